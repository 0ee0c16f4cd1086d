package config

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/guard"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// permission is the key policy. What it holds is no secret: nothing in it is expanded but paths, and its faults may quote it.
type permission struct {
	mode       string
	rules      []located[rule]
	files      ruleFiles
	tools      located[[]factsOf]
	targets    located[target.Config]
	classifier located[classifier]
	ask        ask
}

type rule struct {
	policy.Rule
	then string
}

type ruleFiles struct{ managed, user, project located[string] }

type ask struct {
	channels                         []string
	timeout, sessionTime, alwaysTime time.Duration
}

type factsOf struct {
	facts.Override
	arguments []entry[string]
}

type classifier struct {
	policy.ClassifierConfig
	headers []entry[string]
	percent located[int]
}

// words is one string, or a list of strings.
type words struct{ of text }

func (s words) read(r *reader, n *textfile.Node) ([]string, bool) {
	if n.Kind == textfile.Text {
		v, ok := s.of.read(r, n)
		return []string{v}, ok
	}
	return list[string]{s.of}.read(r, n)
}

func (s words) schema() schema {
	return schema{"anyOf": []schema{s.of.schema(), list[string]{s.of}.schema()}}
}

func policyKeys(p *permission) []field {
	return []field{
		key("mode", `What happens to calls that would be asked about: "default" asks (the default over HTTP), "client" leaves the question `+
			`to the client (the default over stdio), "read_only" and "plan" deny whatever writes, "accept_all" allows.`,
			oneOf(policy.Modes()...), &p.mode),
		key("rules", "Your rules: deny beats ask beats allow, whatever their order.",
			listAt(object[rule]{fields: ruleKeys, meant: policy.RuleWords()}), &p.rules),
		section("rule_files", "Files of further rules, by who wrote them. Each holds the one key rules.",
			ruleFilesKeys(&p.files)...),
		keyAt("tools", "What tools can do, where it is otherwise than they say or the hub infers. The first entry that says something counts.",
			list[factsOf]{objectOf(factsKeys)}, &p.tools),
		keyAt("targets", "Which paths and hosts calls may be aimed at.", objectOf(targetsKeys), &p.targets),
		keyAt("classifier", "A program or address that is asked for its opinion of calls. Off where this key is absent.",
			objectOf(classifierKeys), &p.classifier),
		section("ask", "How people are asked, and how long their answers hold.", askKeys(&p.ask)...),
	}
}

func ruleKeys(r *rule) []field {
	globs := words{text{check: nameGlob}}
	return []field{
		key("id", "Its name in records (default: its number).", plainText, &r.ID),
		key("match", `Tools, as globs over canonical names: "mcp.github.*".`, globs, &r.Match),
		key("tags", "Tools with one of these tags: readonly, write, dangerous, network, filesystem … (tools show prints them).",
			words{plainText}, &r.Tags),
		key("server", "Tools of these servers or toolsets, as globs.", globs, &r.Server),
		key("profile", "Calls through these profiles, as globs.", globs, &r.Profile),
		key("actor", `Calls of these callers: names of tokens, as globs; "local" without authentication; of tools call the user's name.`,
			words{text{check: callerGlob}}, &r.Actor),
		key("when", "A CEL expression over arguments, targets, actor, tool, time, _meta, profile and cwd that must be true.",
			plainText, &r.When),
		must(key("then", "What happens: allow, ask, deny or passthrough.",
			oneOf(tool.Allow, tool.Ask, tool.Deny, tool.Passthrough), &r.then)),
		key("every_time", "With then: ask, no answer is remembered.", boolean{}, &r.EveryTime),
		key("reason", "Why: for people, and for the model where the rule denies.", plainText, &r.Reason),
	}
}

func ruleFilesKeys(f *ruleFiles) []field {
	return []field{
		keyAt("managed", "Of whoever administers the machine.", expanded, &f.managed),
		keyAt("user", "Of the user, besides rules.", expanded, &f.user),
		keyAt("project", "Of the project.", expanded, &f.project),
	}
}

func askKeys(a *ask) []field {
	life := duration{min: time.Minute, max: 10 * 366 * 24 * time.Hour, days: true}
	return []field{
		key("channels", "Who is asked, the first that can be: the client behind the call, or whoever answers `mcp-toolhub approvals` "+
			"(default both, in this order).", list[string]{oneOf(gate.Channels()...)}, &a.channels),
		key("timeout", "No answer for so long denies the call (default 4m30s).",
			duration{min: time.Second, max: 24 * time.Hour}, &a.timeout),
		key("session_time", "How long an answer for a session holds at most (default 12h; 1h where the protocol has no sessions).",
			life, &a.sessionTime),
		key("always_time", "How long an answer for good holds (default 90d).", life, &a.alwaysTime),
	}
}

func targetsKeys(c *target.Config) []field {
	paths, names := list[string]{expanded}, list[string]{plainText}
	return []field{
		key("allowed_write_roots", "Directories that calls may write to, besides their own working directory. Elsewhere they ask.",
			paths, &c.AllowedWriteRoots),
		key("allow_temp_writes", "Whether calls may write to the directory for temporary files (default false).",
			boolean{}, &c.AllowTempWrites),
		key("sensitive_paths", "Globs of paths that are asked about, besides the built-in ones (keys, credentials, .env …).",
			paths, &c.SensitivePaths),
		key("exempt_paths", "Globs of paths that are not sensitive whatever else says so.", paths, &c.ExemptPaths),
		key("allowed_hosts", "Hosts, *.name or networks that calls may be aimed at. Where any are given, all others are denied.",
			names, &c.AllowedHosts),
		key("denied_hosts", "Hosts, *.name or networks that calls may not be aimed at.", names, &c.DeniedHosts),
		key("allowed_domains", "Names that are allowed with all that is below them.", names, &c.AllowedDomains),
		key("denied_domains", "Names that are denied with all that is below them.", names, &c.DeniedDomains),
	}
}

func classifierKeys(c *classifier) []field {
	return []field{
		key("command", "The program and its arguments. It gets the call as a JSON object on its standard input.",
			list[string]{text{expand: true, check: noNUL}}, &c.Command),
		key("url", "Or the address that the call is posted to.", text{expand: true, check: webURL}, &c.URL),
		key("headers", "HTTP headers for the address.",
			mapping[string]{of: text{expand: true, empty: true, scalar: true, check: headerValue},
				key: headerName}, &c.headers),
		key("timeout", "No answer for so long means ask (default 2s).",
			duration{min: time.Millisecond, max: time.Minute}, &c.Timeout),
		key("match", "Tools that it is asked about, as globs over canonical names (default all).",
			words{text{check: nameGlob}}, &c.Match),
		key("tags", "Tools with one of these tags.", words{plainText}, &c.Tags),
		key("may_allow", "Whether its allow spares the question (default false: it can only tighten).", boolean{}, &c.MayAllow),
		keyAt("min_confidence_percent", "An allow that is less sure than so many percent means ask.",
			number{0, 100}, &c.percent),
	}
}

func factsKeys(f *factsOf) []field {
	return []field{
		must(key("match", "Which tools, as a glob over canonical names.", text{check: nameGlob}, &f.Match)),
		key("risk", "low, medium, high or critical.", plainText, &f.Risk),
		key("access", "Access kinds: read, write, delete, execute, network, filesystem, browser, message.",
			list[string]{plainText}, &f.Access),
		key("write_effects", "Write effects: create, update, delete, send, execute, upload, unknown.",
			list[string]{plainText}, &f.WriteEffects),
		key("kind", "The kind of tool, in the standard's words.", plainText, &f.Kind),
		key("lifecycle", "draft, available, disabled, requires_setup, deprecated or retired.", plainText, &f.Lifecycle),
		key("tags", `Further tags; "dangerous" makes a tool dangerous.`, list[string]{plainText}, &f.Tags),
		key("arguments", "What arguments name, by JSON pointer: path, url, host, command, code, resource or none.",
			mapping[string]{of: plainText}, &f.arguments),
		key("read_only", "Whether it changes nothing.", optional{}, &f.ReadOnly),
		key("destructive", "Whether it may remove or replace what is there.", optional{}, &f.Destructive),
		key("idempotent", "Whether a second equal call changes nothing more.", optional{}, &f.Idempotent),
		key("open_world", "Whether it deals with things that no one has bounded.", optional{}, &f.OpenWorld),
		key("network", "Whether it reaches other machines.", optional{}, &f.Network),
		key("filesystem", "Whether it reads or writes files.", optional{}, &f.Filesystem),
		key("command", "Whether it runs what its caller writes.", optional{}, &f.Command),
		key("interactive", "Whether it needs a person at a screen.", optional{}, &f.Interactive),
		key("concurrency_safe", "Whether two calls can run side by side.", optional{}, &f.Concurrent),
	}
}

// optional is true or false for a setting that is nil where neither is said.
type optional struct{ boolean }

func (optional) read(r *reader, n *textfile.Node) (*bool, bool) {
	v, ok := boolean{}.read(r, n)
	return &v, ok
}

// policyReader makes the settings of permission, and warns of what matches nothing there.
type policyReader struct {
	*reader
	permission located[permission]
}

// config makes the settings, and reads the rule files, whose paths it returns.
func (r policyReader) config() (c gate.Config, files []string) {
	v := &r.permission.value
	c = gate.Config{Mode: policy.Mode(v.mode), AskTimeout: v.ask.timeout, SessionTime: v.ask.sessionTime,
		AlwaysTime: v.ask.alwaysTime}
	for _, channel := range v.ask.channels {
		c.Channels = append(c.Channels, gate.Channel(channel))
	}
	c.Sets = append(c.Sets, policy.Set{Source: policy.User, Rules: r.rules(v.rules)})
	for _, file := range []struct {
		source policy.Source
		path   located[string]
	}{{policy.Managed, v.files.managed}, {policy.User, v.files.user}, {policy.Project, v.files.project}} {
		if file.path.ok {
			path := r.vars.path(file.path.value)
			files = append(files, path)
			c.Sets = append(c.Sets, r.ruleFile(file.source, path, file.path))
		}
	}
	for _, t := range v.tools.value {
		o := t.Override
		for _, a := range t.arguments {
			if o.Arguments == nil {
				o.Arguments = make(map[string]string)
			}
			o.Arguments[a.name] = a.value
		}
		c.Tools.Tools = append(c.Tools.Tools, o)
	}
	if v.tools.ok && len(c.Tools.Tools) > 0 {
		checkedBy(r.reader, v.tools, "tools", c.Tools.Validate())
	}
	c.Limits = v.targets.value
	for i, dir := range c.Limits.AllowedWriteRoots {
		c.Limits.AllowedWriteRoots[i] = r.vars.path(dir)
	}
	if v.targets.ok {
		checkedBy(r.reader, v.targets, "", c.Limits.Validate())
	}
	c.Classifier = r.classifier(v.classifier)
	return c, files
}

func (r policyReader) classifier(c located[classifier]) *policy.ClassifierConfig {
	if !c.present {
		return nil
	}
	out := c.value.ClassifierConfig
	for _, h := range c.value.headers {
		if out.Headers == nil {
			out.Headers = make(map[string]string)
		}
		out.Headers[h.name] = h.value
	}
	out.MinConfidence = float64(c.value.percent.value) / 100
	for _, name := range []string{"PATH", "HOME"} {
		if value, ok := r.vars.env.lookup(name); ok {
			out.Env = append(out.Env, name+"="+value)
		}
	}
	out.Env = append(out.Env, guard.Nested("")...)
	if c.ok {
		checkedBy(r.reader, c, "", out.Problems())
	}
	return &out
}

// rules checks the rules of the file itself.
func (r policyReader) rules(all []located[rule]) []policy.Rule {
	rules := make([]policy.Rule, 0, len(all))
	for _, one := range all {
		out := one.value.Rule
		out.Then, out.Place = tool.Behavior(one.value.then), r.place(one.Position)
		rules = append(rules, out)
	}
	before := slices.Clone(r.faults)
	for _, p := range policy.CheckRules(rules) {
		path := strings.TrimSuffix(all[p.Rule].path+"."+p.Key, ".")
		if missing := p.Key == "then" && rules[p.Rule].Then == ""; missing || before.Cover(path) {
			continue // it was reported when the rule was read
		}
		faultWithin(r.reader, all[p.Rule], p.Key, p.Message, p.Hint)
	}
	return rules
}

// ruleFile reads one file of rules. Its faults have places of their own.
func (r policyReader) ruleFile(source policy.Source, path string, at located[string]) policy.Set {
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
			if len(r.faults) < maxFaults {
				r.faults = append(r.faults, f)
			}
		}
	case errors.Is(err, fs.ErrNotExist):
		faultOf(r.reader, at, "there is no such file", "check the path, or write a file with the one key rules")
	default:
		faultOf(r.reader, at, "the file cannot be read", "make it readable for the user that runs the hub")
	}
	return set
}

// checkedBy reports what the package of the settings has found in v: errors with a key path below v, under the name above.
func checkedBy[V any](r *reader, v located[V], above string, err error) {
	var all []error
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	} else if err != nil {
		all = []error{err}
	}
	for _, one := range all {
		var ofFacts *facts.Fault
		var ofTarget *target.Fault
		var ofPolicy policy.Problem
		path, message, hint := "", one.Error(), ""
		switch {
		case errors.As(one, &ofFacts):
			path, message = ofFacts.Path, ofFacts.Problem
		case errors.As(one, &ofTarget):
			path, message = ofTarget.Path, ofTarget.Problem
		case errors.As(one, &ofPolicy):
			path, message, hint = ofPolicy.Key, ofPolicy.Message, ofPolicy.Hint
		}
		faultWithin(r, v, strings.TrimPrefix(path, above), message, hint)
	}
}

// faultWithin reports a fault at a key path below v, at the deepest place of it that the file holds.
func faultWithin[V any](r *reader, v located[V], path, message, hint string) {
	at := v.Position
	if n := v.node; n != nil {
		for _, step := range strings.FieldsFunc(path, func(c rune) bool { return c == '.' || c == '[' || c == ']' }) {
			next := n.Member(step)
			if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Items) {
				next = n.Items[i]
			}
			if next == nil {
				break
			}
			n, at = next, next.Position
		}
	}
	if path != "" && path[0] != '.' && path[0] != '[' {
		path = "." + path
	}
	defer r.at(v.path + path)()
	r.fault(at, message, hint)
}
