package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// The personas below make calls as people's agents do, and answer by intentions of their own. Nothing here knows how rules are found.

// persona is somebody whose agent calls tools.
type persona struct {
	name   string
	habits []habit
}

// habit is a kind of call that the persona's agent makes, and what the persona thinks of it.
type habit struct {
	tool   tool.Name
	weight int // how often, relative to the others
	args   func(*world) map[string]any
	likes  func(args map[string]any) bool // whether the persona allows such a call
}

// world is where the calls of one persona come from.
type world struct{ *rand.Rand }

// often picks one of all: the first ones most of the time, as people have favourites.
func (w *world) often(all ...string) string {
	for {
		if i := int(w.ExpFloat64() * float64(len(all)) / 3); i < len(all) {
			return all[i]
		}
	}
}

func (w *world) word() string {
	return w.often("login", "cache", "import", "layout", "search", "parser", "metrics", "retry", "upload", "theme", "queue", "report") +
		fmt.Sprint(w.IntN(90))
}

func (w *world) file(dir string, ends ...string) string {
	return path.Join(dir, w.often("", "internal", "cmd", "docs", "test"), w.word()+w.often(ends...))
}

const homeOf = "/home/ann"

func text(args map[string]any, name string) string {
	s, _ := args[name].(string)
	return s
}

func yes(map[string]any) bool { return true }
func no(map[string]any) bool  { return false }

func in(args map[string]any, name string, values ...string) bool {
	return slices.Contains(values, text(args, name))
}

// personas are the people of the proof.
func personas() []persona { return []persona{developer(), operator(), writer(), sceptic()} }

func developer() persona {
	projects := homeOf + "/projects/"
	ours := func(args map[string]any) bool {
		p := text(args, "path")
		return strings.HasPrefix(p, projects) && !strings.HasPrefix(p, projects+"clients/")
	}
	repo := func(w *world) string {
		return projects + w.often("hub", "site", "notes", "tools", "parser", "clients/acme", "clients/zenith")
	}
	read := func(w *world) map[string]any {
		if w.IntN(60) == 0 {
			return map[string]any{"path": w.often(homeOf+"/Downloads/", homeOf+"/letters/") + w.word() + ".txt"}
		}
		return map[string]any{"path": w.file(repo(w), ".go", ".md", ".ts")}
	}
	write := func(w *world) map[string]any {
		return map[string]any{"path": w.file(repo(w), ".go", ".md", ".ts"), "content": w.word() + " " + w.word()}
	}
	branch := func(w *world) map[string]any {
		name := w.often("feature/"+w.word(), "fix/"+w.word(), "feature/"+w.word(), "main", "release/1."+fmt.Sprint(w.IntN(9)))
		return map[string]any{"repo_path": projects + w.often("hub", "site"), "branch": name}
	}
	hosts := []string{"pkg.go.dev", "developer.mozilla.org", "docs.python.org", "go.dev", "stackoverflow.com", "pastebin.com", "bit.ly"}
	return persona{"ann", []habit{
		{"mcp.fs.read_file", 40, read, ours},
		{"mcp.fs.list_directory", 12, func(w *world) map[string]any {
			return map[string]any{"path": path.Join(repo(w), w.often("", "cmd", "docs"))}
		}, ours},
		{"mcp.fs.write_file", 14, write, ours},
		{"mcp.git.push", 8, branch, func(a map[string]any) bool {
			return strings.HasPrefix(text(a, "branch"), "feature/") || strings.HasPrefix(text(a, "branch"), "fix/")
		}},
		{"mcp.web.fetch", 14, func(w *world) map[string]any {
			return map[string]any{"url": "https://" + w.often(hosts...) + "/" + w.word()}
		},
			func(a map[string]any) bool {
				return !strings.Contains(text(a, "url"), "pastebin.com") && !strings.Contains(text(a, "url"), "bit.ly")
			}},
		{"mcp.tracker.comment", 8, func(w *world) map[string]any {
			return map[string]any{"project": w.often("hub", "site", "kernel"), "issue_id": fmt.Sprint(100 + w.IntN(900)), "body": w.word() + " done"}
		}, func(a map[string]any) bool { return in(a, "project", "hub", "site") }},
	}}
}

func operator() persona {
	where := func(w *world) string { return w.often("staging", "test", "prod", "prod-eu") }
	calm := func(a map[string]any) bool { return in(a, "namespace", "staging", "test") }
	return persona{"bob", []habit{
		{"mcp.cluster.get_pods", 30, func(w *world) map[string]any { return map[string]any{"namespace": where(w)} }, yes},
		{"mcp.cluster.restart", 12, func(w *world) map[string]any {
			return map[string]any{"namespace": where(w), "deployment": w.often("web", "api", "worker", "cron")}
		}, calm},
		{"mcp.cluster.scale", 10, func(w *world) map[string]any {
			return map[string]any{"namespace": "staging", "deployment": w.often("web", "api"), "replicas": 1 + w.IntN(14)}
		}, func(a map[string]any) bool { return a["replicas"].(int) <= 6 }},
		{"mcp.cluster.delete_volume", 2, func(w *world) map[string]any {
			return map[string]any{"namespace": where(w), "volume_id": w.word()}
		}, no},
		{"mcp.shell.run", 16, func(w *world) map[string]any {
			return map[string]any{"command": w.often("systemctl status nginx", "df -h", "uptime", "journalctl -n 50", "systemctl restart nginx", "rm -rf /var/log/nginx")}
		}, func(a map[string]any) bool {
			return !strings.HasPrefix(text(a, "command"), "rm") && !strings.Contains(text(a, "command"), "restart")
		}},
	}}
}

func writer() persona {
	drafts := func(w *world, ends ...string) map[string]any {
		return map[string]any{"path": path.Join(homeOf, "texts", w.often("novel", "blog", "letters", "reviews"), w.word()+w.often(ends...)), "content": w.word()}
	}
	return persona{"cara", []habit{
		{"mcp.fs.write_file", 20, func(w *world) map[string]any { return drafts(w, ".md", ".txt", ".docx", ".sh") },
			func(a map[string]any) bool {
				return strings.HasSuffix(text(a, "path"), ".md") || strings.HasSuffix(text(a, "path"), ".txt")
			}},
		{"mcp.fs.read_file", 20, func(w *world) map[string]any { return map[string]any{"path": drafts(w, ".md", ".txt")["path"]} }, yes},
		{"mcp.mail.send", 12, func(w *world) map[string]any {
			return map[string]any{"to": w.often("editor@press.example", "ben@press.example", "list@fans.example"), "subject": w.word(), "body": w.word()}
		}, func(a map[string]any) bool { return in(a, "to", "editor@press.example", "ben@press.example") }},
		{"mcp.crm.get_customer", 10, func(w *world) map[string]any { return map[string]any{"customer_id": fmt.Sprint(w.IntN(4000))} }, yes},
		{"mcp.crm.delete_customer", 2, func(w *world) map[string]any { return map[string]any{"customer_id": fmt.Sprint(w.IntN(4000))} }, no},
	}}
}

func sceptic() persona {
	return persona{"dee", []habit{
		{"mcp.fs.read_file", 25, func(w *world) map[string]any {
			return map[string]any{"path": w.file(homeOf+w.often("/work/plan", "/work/budget", "/private/diary", "/private/tax"), ".md", ".csv")}
		}, func(a map[string]any) bool { return strings.HasPrefix(text(a, "path"), homeOf+"/work/") }},
		{"mcp.fs.write_file", 10, func(w *world) map[string]any {
			return map[string]any{"path": w.file(homeOf+"/work/plan", ".md", ".csv"), "content": w.word()}
		}, no},
		{"mcp.web.fetch", 10, func(w *world) map[string]any {
			return map[string]any{"url": "https://" + w.often("intranet.example.com", "example.org", "news.example.net") + "/" + w.word()}
		}, func(a map[string]any) bool { return strings.HasPrefix(text(a, "url"), "https://intranet.example.com/") }},
		{"mcp.cluster.get_pods", 6, func(*world) map[string]any { return map[string]any{"namespace": "test"} }, yes},
	}}
}

// declared are the tools of the servers, as servers declare them.
func declared() history.Tools {
	all := make(map[tool.Name]*tool.Tool)
	for name, properties := range map[tool.Name]string{
		"mcp.fs.read_file":          `"path":{"type":"string"}`,
		"mcp.fs.list_directory":     `"path":{"type":"string"}`,
		"mcp.fs.write_file":         `"path":{"type":"string"},"content":{"type":"string"}`,
		"mcp.git.push":              `"repo_path":{"type":"string"},"branch":{"type":"string"},"force":{"type":"boolean"}`,
		"mcp.web.fetch":             `"url":{"type":"string","format":"uri"}`,
		"mcp.tracker.comment":       `"project":{"type":"string"},"issue_id":{"type":"string"},"body":{"type":"string"}`,
		"mcp.cluster.get_pods":      `"namespace":{"type":"string"}`,
		"mcp.cluster.restart":       `"namespace":{"type":"string"},"deployment":{"type":"string"}`,
		"mcp.cluster.scale":         `"namespace":{"type":"string"},"deployment":{"type":"string"},"replicas":{"type":"integer"}`,
		"mcp.cluster.delete_volume": `"namespace":{"type":"string"},"volume_id":{"type":"string"}`,
		"mcp.shell.run":             `"command":{"type":"string"}`,
		"mcp.mail.send":             `"to":{"type":"string"},"subject":{"type":"string"},"body":{"type":"string"}`,
		"mcp.crm.get_customer":      `"customer_id":{"type":"string"}`,
		"mcp.crm.delete_customer":   `"customer_id":{"type":"string"}`,
	} {
		schema := `{"type":"object","properties":{` + properties + `}}`
		_, rest, _ := strings.Cut(string(name), ".")
		server, native, _ := strings.Cut(rest, ".")
		all[name] = &tool.Tool{Name: name, Server: server, Native: native, InputSchema: json.RawMessage(schema), SchemaDigest: tool.Digest([]byte(schema)),
			Declaration: json.RawMessage(`{"name":"` + native + `","inputSchema":` + schema + `}`)}
	}
	return func(name tool.Name) *tool.Tool { return all[name] }
}

// policyOf makes the gate of the proof with some rules more.
func policyOf(more []policy.Rule) (*gate.Gate, error) {
	return gate.New(gate.Config{Sets: []policy.Set{{Source: policy.CommandLine, Rules: more}},
		Limits: target.Config{AllowedWriteRoots: []string{homeOf}}}, gate.Options{Dir: homeOf, Home: homeOf, State: "/var/lib/hub"})
}

// weeks are what a persona's agent did in that many weeks, and what the persona answered. One answer of two hundred is a slip of the
// finger, and one question of fifty is not answered. Nobody slips on a call that was there before: of two equal calls with different
// answers, no policy could give both.
func weeks(t testing.TB, p persona, seed uint64, n int) (all []history.Call) {
	t.Helper()
	w := &world{rand.New(rand.NewPCG(seed, 18))}
	g, err := policyOf(nil)
	if err != nil {
		t.Fatal(err)
	}
	tools := declared()
	sum, said := 0, make(map[string]bool)
	for _, h := range p.habits {
		sum += h.weight
	}
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for day := range 5 * n {
		for range 30 + w.IntN(30) {
			h, left := p.habits[0], w.IntN(sum)
			for _, one := range p.habits {
				if h = one; left < one.weight {
					break
				}
				left -= one.weight
			}
			args := h.args(w)
			input, err := json.Marshal(args)
			if err != nil {
				t.Fatal(err)
			}
			c := history.Call{ID: tool.InvocationID(fmt.Sprintf("inv_%s%d.%d", p.name, seed, len(all))), Tool: h.tool, Profile: "default", Input: input,
				At: at.AddDate(0, 0, 7*(day/5)+day%5).Add(time.Duration(w.IntN(8*3600)) * time.Second), Actor: tool.Actor{Door: "http", Name: p.name}}
			r, err := g.Request(context.Background(), gate.Call{Tool: tools(h.tool), Input: input, Actor: c.Actor, Profile: c.Profile})
			if err != nil {
				t.Fatal(err)
			}
			if c.Said = g.Engine().Decide(context.Background(), r); c.Said.Behavior == tool.Ask {
				c.Answer = history.Denied
				likes, before := said[string(h.tool)+string(input)]
				if !before {
					likes = h.likes(args) != (w.IntN(200) == 0)
					said[string(h.tool)+string(input)] = likes
				}
				if likes {
					c.Answer = history.Allowed
				}
				if w.IntN(50) == 0 {
					c.Answer = history.Unanswered
				}
			}
			all = append(all, c)
		}
	}
	return all
}
