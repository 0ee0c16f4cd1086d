package config

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// permission is the key policy. What it holds is no secret: nothing in it is expanded but paths,
// and its faults may quote it.
type permission struct {
	mode    policy.Mode
	rules   []shape.Located[policy.Rule]
	managed shape.Located[string] // rule_files.managed
	tools   shape.Located[[]factsOf]
	targets shape.Located[target.Config]
	ask     ask
	rates   []rateOf
}

// rateOf is an entry of rates.
type rateOf struct {
	policy.Rate
	per []string
}

type ask struct {
	channels shape.Located[[]gate.Channel]
	webhook  shape.Located[string]
	notSelf  *bool
	timeout  time.Duration
}

type factsOf struct {
	facts.Override
	arguments []shape.Entry[string]
}

func policyKeys(p *permission) []shape.Field {
	return []shape.Field{
		shape.Key("mode",
			`What happens to calls that would be asked about: "default" asks (the default over HTTP), "client" leaves the `+
				`question to the client (the default over stdio), "read_only" and "plan" deny whatever writes, `+
				`"accept_all" allows.`,
			shape.OneOf(policy.Modes()...), &p.mode),
		shape.Key("rules", "Your rules: deny beats ask beats allow, whatever their order.", policy.Rules{}, &p.rules),
		shape.SectionWith("rule_files", "Files of further rules. Each holds the one key rules.",
			gone("write the rules as policy.rules, or name the file as managed", "user", "project"),
			shape.KeyAt("managed", "Of the administrator of the machine.", expanded, &p.managed)),
		shape.KeyAt("tools",
			"What tools can do, where the hub infers otherwise. The first entry that says something counts.",
			shape.List[factsOf]{Of: shape.Object[factsOf]{Fields: factsKeys, Gone: goneFacts()}}, &p.tools),
		shape.Key("rates",
			"How often tools may be called. Every entry that matches counts. A call too many fails with "+
				"rate_limited.", shape.List[rateOf]{Of: shape.ObjectOf(rateKeys)}, &p.rates),
		shape.KeyAt("targets", "Which paths and hosts calls may be aimed at.",
			shape.Object[target.Config]{Fields: targetsKeys, Gone: goneTargets()}, &p.targets),
		shape.SectionSince("ask", "How people are asked.", gone(fixed, "session_time", "always_time"),
			askKeys(&p.ask)...),
	}
}

func askKeys(a *ask) []shape.Field {
	return []shape.Field{
		shape.KeyAt("channels",
			"Who is asked, the first that can be: client, the one behind the call; queue, whoever answers "+
				"`mcp-toolhub approvals` or the page; webhook, the queue with a message to webhook (default "+
				"client, queue).",
			shape.List[gate.Channel]{Of: shape.OneOf(gate.ChannelClient, gate.ChannelQueue, gate.ChannelWebhook)},
			&a.channels),
		shape.KeyAt("webhook",
			"The address that gets a message for each question in the queue, in Slack's format, with a link to "+
				"the page. Needs webhook in channels.",
			shape.Text{Expand: true, Check: webURL}, &a.webhook),
		shape.Key("not_self",
			"Whether nobody may answer for their own call: neither the client behind it, nor the browser that "+
				"made it. Default: true over HTTP with several tokens, for dangerous tools and calls beyond the "+
				"limits.", yesOrNo, &a.notSelf),
		shape.Key("timeout", "No answer for so long denies the call (default 4m30s).",
			shape.Duration{Min: time.Second, Max: 24 * time.Hour}, &a.timeout),
	}
}

func targetsKeys(c *target.Config) []shape.Field {
	paths, names := shape.List[string]{Of: expanded}, shape.List[string]{Of: plainText}
	return []shape.Field{
		shape.Key("allowed_write_roots",
			"Directories that calls may write to, besides their own working directory. Elsewhere they ask.",
			paths, &c.AllowedWriteRoots),
		shape.Key("sensitive_paths",
			"Globs of paths that are asked about, besides the built-in ones (keys, credentials, .env …).",
			paths, &c.SensitivePaths),
		shape.Key("exempt_paths", "Globs of paths that are not sensitive whatever else says so.", paths,
			&c.ExemptPaths),
		shape.Key("allowed_hosts",
			"Hosts, *.name or networks that calls may be aimed at. Others are then denied.",
			names, &c.AllowedHosts),
		shape.Key("denied_hosts", "Hosts, *.name or networks that calls may not be aimed at.", names, &c.DeniedHosts),
	}
}

func factsKeys(f *factsOf) []shape.Field {
	return []shape.Field{
		matchKey(&f.Match),
		shape.Key("tags", `Further tags; "dangerous" makes a tool dangerous.`, shape.List[string]{Of: plainText},
			&f.Tags),
		shape.Key("arguments",
			"What arguments name, by JSON pointer: path, url, host, command, code, resource or none.",
			shape.Mapping[string]{Of: plainText}, &f.arguments),
		shape.Key("sensitive",
			"JSON pointers to arguments that are secret, such as /password or /users/*/pin: shown and recorded "+
				"with marks.",
			shape.List[string]{Of: plainText}, &f.Sensitive),
		shape.Key("sensitive_result",
			"JSON pointers into the structuredContent of results to what is secret: recorded with marks.",
			shape.List[string]{Of: plainText}, &f.SensitiveResult),
		shape.Key("read_only", "Whether it changes nothing.", yesOrNo, &f.ReadOnly),
		shape.Key("destructive", "Whether it may remove or replace what is there.", yesOrNo, &f.Destructive),
		shape.Key("idempotent", "Whether a second equal call changes nothing more.", yesOrNo, &f.Idempotent),
		shape.Key("network", "Whether it reaches other machines.", yesOrNo, &f.Network),
		shape.Key("command", "Whether it runs what its caller writes.", yesOrNo, &f.Command),
		shape.Key("concurrency",
			"How calls run: safe (together), by_target (one at a time for each target, or for each caller if that "+
				"is unknown) or exclusive (alone at the server).", plainText, &f.Concurrency),
		shape.Key("interrupt",
			"What a client's cancellation does: cancel (default; it is sent on) or block (the call is let finish).",
			plainText, &f.Interrupt),
	}
}

func rateKeys(r *rateOf) []shape.Field {
	return []shape.Field{
		shape.Key("match", "Which tools, as a glob over canonical names (default all).", toolGlob, &r.Match),
		shape.Key("actor",
			`Calls of which callers: the name of a token, as a glob; "local" without authentication (default all).`,
			shape.Text{}, &r.Actor),
		shape.Must(shape.Key("calls", "So many calls.", shape.Integer[int]{Min: 1, Max: maxCount}, &r.Calls)),
		shape.Must(shape.Key("every", "Within this time: \"1m\".",
			shape.Duration{Min: time.Second, Max: 24 * time.Hour}, &r.Every)),
		shape.Key("per", "What each has a count of its own: actor, tool, server (default: one for all).",
			shape.List[string]{Of: shape.OneOf("actor", "tool", "server")}, &r.per),
	}
}

// optional is a value for a setting that is nil where nothing is said.
type optional[V any] struct{ shape.Shape[V] }

func (s optional[V]) Read(r *shape.Reader, n *textfile.Node) (*V, bool) {
	v, ok := s.Shape.Read(r, n)
	return &v, ok
}

var yesOrNo = optional[bool]{shape.Boolean{}}

// policyReader makes the settings of permission, and warns of what matches nothing there.
type policyReader struct {
	*reader
	permission shape.Located[permission]
}

// config makes the settings, and reads the rule file, whose path it returns.
func (r policyReader) config() (c gate.Config, files []string) {
	v := &r.permission.Value
	c = gate.Config{Mode: v.mode, Channels: r.channels(&v.ask), Webhook: v.ask.webhook.Value,
		NotSelf:    v.ask.notSelf != nil && *v.ask.notSelf,
		AskTimeout: v.ask.timeout, Sets: []policy.Set{{Source: policy.User, Rules: shape.Values(v.rules)}}}
	if v.managed.OK {
		path := r.vars.path(v.managed.Value)
		files = append(files, path)
		c.Sets = append(c.Sets, r.ruleFile(policy.Managed, path, v.managed))
	}
	for _, t := range v.tools.Value {
		o := t.Override
		o.Arguments = shape.AsMap(t.arguments)
		c.Tools.Tools = append(c.Tools.Tools, o)
	}
	if v.tools.OK && len(c.Tools.Tools) > 0 {
		checkedBy(r.reader, v.tools, "tools", c.Tools.Validate())
	}
	c.Limits = v.targets.Value
	r.vars.paths(c.Limits.AllowedWriteRoots)
	if v.targets.OK {
		checkedBy(r.reader, v.targets, "", c.Limits.Validate())
	}
	for _, one := range v.rates {
		one.PerActor, one.PerTool, one.PerServer = slices.Contains(one.per, "actor"), slices.Contains(one.per, "tool"),
			slices.Contains(one.per, "server")
		c.Rates = append(c.Rates, one.Rate)
	}
	return c, files
}

// channels are the channels of a. Of channel and address of the webhook, none is of use without the other.
func (r policyReader) channels(a *ask) []gate.Channel {
	switch named := slices.Contains(a.channels.Value, gate.ChannelWebhook); {
	case named && !a.webhook.Present:
		shape.FaultOf(r.Reader, a.channels, "the webhook has no address",
			"set policy.ask.webhook, as ${secret:NAME} for instance")
	case !named && a.webhook.Present:
		shape.WarnOf(r.Reader, a.webhook, "it gets no messages", "name webhook in policy.ask.channels")
	}
	return a.channels.Value
}

// ruleFile reads one file of rules. Its faults have places of their own.
func (r policyReader) ruleFile(source policy.Source, path string, at shape.Located[string]) policy.Set {
	if before, err := os.Stat(path); err == nil {
		r.read[path] = before
	}
	data, err := readRegular(path, maxFileBytes)
	r.note(path, data)
	var set policy.Set
	if err == nil {
		set, err = policy.ParseRules(source, path, data)
	}
	var faults policy.Faults
	switch {
	case err == nil:
	case errors.As(err, &faults):
		for _, f := range faults.Faults {
			r.Report(f)
		}
	case errors.Is(err, fs.ErrNotExist):
		shape.FaultOf(r.Reader, at, "there is no such file", "check the path, or write a file with the one key rules")
	default:
		shape.FaultOf(r.Reader, at, "the file cannot be read", "make it readable for the user that runs the hub")
	}
	return set
}

// checkedBy reports what the package of the settings has found in v: errors with a key path below
// v, under the name above.
func checkedBy[V any](r *reader, v shape.Located[V], above string, err error) {
	var all []error
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	} else if err != nil {
		all = []error{err}
	}
	for _, one := range all {
		var ofFacts *facts.Fault
		var ofTarget *target.Fault
		path, message := "", one.Error()
		switch {
		case errors.As(one, &ofFacts):
			path, message = ofFacts.Path, ofFacts.Problem
		case errors.As(one, &ofTarget):
			path, message = ofTarget.Path, ofTarget.Problem
		}
		shape.FaultWithin(r.Reader, v, strings.TrimPrefix(path, above), message, "")
	}
}
