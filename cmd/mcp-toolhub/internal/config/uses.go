package config

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// usesOf says what the file makes the hub start, reach and allow, for a person who is asked whether
// to trust it. It notes in s what each server starts.
func usesOf(f *file, s *Settings) []string {
	var all []string
	s.Starts = make(map[string]string)
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, entries := range [][]shape.Entry[server]{f.mcpServers, f.servers} {
		for _, e := range entries {
			s.Starts[ServerID(e.Name)] = useOfServer(&e.Value)
			if !e.Value.Disabled {
				add("%s: %s", shown(e.Name), s.Starts[ServerID(e.Name)])
			}
		}
	}
	if len(f.hub.env) > 0 {
		add("hub.env: passes on to all of them: %s", shownAll(f.hub.env))
	}
	if w := f.policy.Value.ask.webhook; w.Present {
		add("policy.ask.webhook: sends questions to %s", shownNodes([]*textfile.Node{w.Node}))
	}
	for i, h := range f.hooks {
		if use := useOfHook(&h.Value.Config, h.Node); use != "" {
			add("hook %s: %s", shown(cmp.Or(h.Value.Name, fmt.Sprintf("hook-%d", i+1))), use)
		}
	}
	if len(f.hooks) > 0 {
		add("hooks: see and may change calls: %d", len(f.hooks))
	}
	if e := f.deferred.embeddings; e.Present {
		add("deferred.embeddings: sends descriptions and questions to %s",
			shownNodes([]*textfile.Node{e.Node.Member("url")}))
	}
	if s.Store != StoreSQLite && s.Store != StoreOff {
		add("persist.store: writes the records of calls to %s", shownNodes([]*textfile.Node{f.store.Node}))
	}
	if s.Downstream.HTTP.Listen != "" {
		add("hub.http: listens on %s", shown(s.Downstream.HTTP.Listen))
	}
	if s.Telemetry.Metrics != "" {
		add("hub.metrics: listens on %s", shown(s.Telemetry.Metrics))
	}
	if s.Telemetry.Content {
		add("hub.telemetry: sends arguments and results of calls to the collector that OTEL_* variables name")
	}
	if s.Code.Enabled {
		writes, runs := "nowhere", ""
		if len(s.Code.AllowedWriteRoots) > 0 {
			writes = shownAll(s.Code.AllowedWriteRoots)
		}
		if s.Code.Run.Enabled {
			runs = "; runs commands"
		}
		add("hub.toolsets.code: reads %s; writes %s%s", shown(cmp.Or(s.Code.Root, "the working directory")), writes,
			runs)
	}
	if f.policy.Value.tools.Present {
		add("policy.tools: says what tools can do")
	}
	if f.policy.Value.targets.Present {
		add("policy.targets: says where calls may be aimed at")
	}
	allowing := 0
	for _, set := range s.Policy.Sets {
		for _, rule := range set.Rules {
			if rule.Then == tool.Allow || rule.Then == tool.Passthrough {
				allowing++
			}
		}
	}
	if allowing > 0 {
		add("policy: rules that let calls run without a question: %d", allowing)
	}
	if mode := s.Policy.Mode; mode == policy.ModeAcceptAll || mode == policy.ModeClient {
		add("policy.mode: %s", mode)
	}
	return all
}

// useOfServer says what a server's entry starts or reaches.
func useOfServer(v *server) string {
	if v.url.Present {
		return "connects to " + shownNodes([]*textfile.Node{v.url.Node}) + withNames("headers", v.headers) + trusted(v)
	}
	text := "runs " + shownNodes([]*textfile.Node{v.command.Node})
	if v.args.Present && len(v.args.Node.Items) > 0 {
		text += " " + shownNodes(v.args.Node.Items)
	}
	if v.cwd.Present {
		text += ", in " + shownNodes([]*textfile.Node{v.cwd.Node})
	}
	text += withNames("variables", v.env)
	if v.envFile.Present {
		text += ", with the variables of " + shownNodes([]*textfile.Node{v.envFile.Node})
	}
	return text + trusted(v)
}

func trusted(v *server) string {
	if v.Trust {
		return ", and believes what it says of its tools"
	}
	return ""
}

// withNames names variables or headers, and shows no value.
func withNames(what string, entries shape.Located[[]shape.Entry[string]]) string {
	var names []string
	for _, e := range entries.Value {
		names = append(names, e.Name)
	}
	if len(names) == 0 {
		return ""
	}
	return ", with the " + what + " " + shownAll(names)
}

// plainWord matches words that need no quotes.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@=+,%${}~-]+$`)

// shown is a word as a person may see it: secrets in addresses are masked, and nothing is invisible.
func shown(word string) string {
	if word = secret.Text(word, true); plainWord.MatchString(word) {
		return word
	}
	return strconv.Quote(word)
}

func shownAll(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = shown(w)
	}
	return strings.Join(all, " ")
}

// shownNodes are values as they stand in the file.
func shownNodes(nodes []*textfile.Node) string {
	var words []string
	for _, n := range nodes {
		if n != nil {
			words = append(words, n.Text)
		}
	}
	return shownAll(words)
}
