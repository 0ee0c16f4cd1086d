package console

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"reflect"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
)

//go:embed assets
var assets embed.FS

// asset serves a file that is the same for everybody.
func asset(name, kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "no-cache")
		http.ServeFileFS(w, r, assets, "assets/"+name)
	}
}

// page is what a visit ends with. Redirect, where it is not "", is where the browser goes on.
type page struct {
	Name     string // of the template
	Title    string
	Status   int    // 0: 200
	Live     bool   // the browser gets the page again every few seconds, because it may change
	Refresh  string // the header of that name: when the browser gets the page again, or goes on
	Data     any
	Redirect string
}

// frame is what the layout gets.
type frame struct {
	*page
	Places        []place
	Session, CSRF string // "" where nobody is signed in
	Said          string
	Waiting       int // approvals
}

// place is one of the seven places.
type place struct {
	Name, Path string
	Here       bool
}

// show writes the page.
func (v *visit) show(p *page) {
	if p.Redirect != "" {
		http.Redirect(v.w, v.r, p.Redirect, http.StatusSeeOther)
		return
	}
	f := frame{page: p}
	if v.session != nil {
		f.Session, f.CSRF = v.session.name, v.session.csrf
		if v.r.Header.Get("Sec-Fetch-Dest") != "empty" { // the script shows nothing of it
			f.Said = v.sessions.told(v.session)
		}
		f.Waiting = len(v.Hub.Approvals())
		first, _, _ := strings.Cut(strings.TrimPrefix(v.r.URL.Path, Path), "/")
		if of, below := map[string]string{"tool": "tools", "tries": "tools", "explain": "policy",
			"suggestions": "policy", "add": "servers"}[first]; below {
			first = of
		}
		for _, at := range []place{{Name: "Overview"}, {Name: "Servers", Path: "servers"},
			{Name: "Tools", Path: "tools"}, {Name: "Approvals", Path: "approvals"},
			{Name: "Calls", Path: "calls"}, {Name: "Sign-ins", Path: "secrets"}, {Name: "Policy", Path: "policy"}} {
			at.Here, at.Path = at.Path == first, Path+at.Path
			f.Places = append(f.Places, at)
		}
	}
	var out bytes.Buffer
	if err := v.pages()[p.Name].ExecuteTemplate(&out, "layout.html", f); err != nil {
		v.Logger.Error("a page cannot be written", "page", p.Name, "error", err)
		http.Error(v.w, "the page cannot be written: see the hub's log", http.StatusInternalServerError)
		return
	}
	if p.Refresh != "" {
		v.w.Header().Set("Refresh", p.Refresh)
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if p.Status != 0 {
		v.w.WriteHeader(p.Status)
	}
	_, _ = v.w.Write(out.Bytes())
}

// parsePages reads the templates: each page with the layout around it.
func parsePages() map[string]*template.Template {
	layout := template.Must(template.New("layout.html").Funcs(helpers()).ParseFS(assets, "assets/layout.html"))
	files, _ := fs.Glob(assets, "assets/*.html")
	pages := make(map[string]*template.Template)
	for _, file := range files {
		pages[strings.TrimSuffix(path.Base(file), ".html")] =
			template.Must(template.Must(layout.Clone()).ParseFS(assets, file))
	}
	return pages
}

// helpers are what templates call. Everything that strangers have written passes through plain, or
// lines: what does not print, or turns the direction of a line, stands there as its code point.
// Templates escape the rest.
func helpers() template.FuncMap {
	return template.FuncMap{
		"plain": func(text any) string { return gate.Plain(fmt.Sprint(text), 200) },
		"long":  func(text any) string { return gate.Plain(fmt.Sprint(text), 2000) },
		"lines": func(text any) string { return lines(fmt.Sprint(text), maxLines) },
		"piece": func(text any) string { return lines(fmt.Sprint(text), maxPiece) },
		"step": func(f frame, st tool.ServerStatus, do any) button {
			return button{st.Server, fmt.Sprint(do), written(fmt.Sprint(do), st.State), f.CSRF}
		},
		"time":   func(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") },
		"exact":  func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"join":   func(texts []string) string { return strings.Join(texts, ", ") },
		"took":   took,
		"ms":     milliseconds,
		"actor":  actor,
		"pretty": func(text string) string { return indented([]byte(text)) },
		"last":   func(all []Decision) Decision { return all[len(all)-1] },

		"brief": brief, "words": func(s any) string { return strings.ReplaceAll(fmt.Sprint(s), "_", " ") },
		"clock":    Clock,
		"many":     func(n any) string { return many(reflect.ValueOf(n).Int()) },
		"because":  because,
		"calls":    newest[tool.InvocationID],
		"others":   newest[history.Through],
		"through":  func(t history.Through) string { return ThroughText(&t) },
		"more":     func(n int) int { return max(0, n-ShownEvidence) },
		"sentence": sentence,
	}
}

// because is why a tool stands where it does, in words; the records have a code for it.
func because(why string) string {
	words := map[string]string{
		"nothing_deferred":     "nothing is deferred for this client",
		"listed":               "nothing is deferred for this client",
		"meta_tool":            "the hub's own, for what is not on the list",
		"always_load":          "deferred.always_load of the config names it",
		"declared_always_load": "its server asks for it to be loaded",
		"user_interface":       "it has a user interface, which the client shows",
		"mode_always":          "the config says deferred.mode: always",
		"over_token_budget":    "all tools together would cost more tokens than deferred.budget_tokens",
		"over_client_tool_cap": "there are more tools than the client takes",
	}
	if code, text, ok := strings.Cut(why, ": "); ok && !strings.ContainsAny(code, " \"") {
		why = text
	}
	return cmp.Or(words[why], why)
}

// button is one that does something to a server.
type button struct{ Server, Do, Label, CSRF string }

// written is what is written on it.
func written(do string, state tool.ServerState) string {
	switch {
	case do == string(Restart) && state == tool.ServerStopped:
		return "Start"
	case do == string(Restart) && state != tool.ServerReady:
		return "Try again"
	}
	return map[string]string{"restart": "Restart", "enable": "Enable", "disable": "Disable", "remove": "Remove",
		"signin": "Sign in", "signout": "Sign out"}[do]
}

// The largest texts on a page, in bytes.
const (
	maxLines = 60 << 10
	maxPiece = 16 << 10 // where there are several
)

// lines is a text of several lines, cut.
func lines(text string, limit int) string {
	more := ""
	if len(text) > limit {
		more = fmt.Sprintf("\n… (%d bytes more)", len(text)-limit)
		text = strings.ToValidUTF8(text[:limit], "")
	}
	return hidden.Escape(text) + more
}

// took returns the time from the beginning of a call to its end, or to now.
func took(c Call) string {
	if c.LatencyMS != nil {
		return milliseconds(*c.LatencyMS)
	}
	return time.Since(c.Created).Round(time.Second).String()
}

// milliseconds is a time in as many digits as people read.
func milliseconds(ms float64) string {
	d, unit := time.Duration(ms*float64(time.Millisecond)), 100*time.Microsecond
	for d >= 1000*unit {
		unit *= 10
	}
	return d.Round(unit).String()
}

// Clock is the time of day of today, and the date of another day.
func Clock(t time.Time) string {
	if t = t.Local(); t.Format(time.DateOnly) != time.Now().Format(time.DateOnly) {
		return t.Format("2006-01-02 15:04")
	}
	return t.Format(time.TimeOnly)
}

// many is a number that may be large.
func many(n int64) string {
	if n < 10_000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d k", n/1000)
}

// brief is a JSON object of arguments in one short line.
func brief(arguments string) string {
	var parts []string
	err := rawjson.Members([]byte(arguments), func(m rawjson.Member) bool {
		parts = append(parts, m.Name()+": "+hidden.Summary(string(m.Value), 60))
		return len(parts) < 6
	})
	if err != nil || len(parts) == 0 {
		return ""
	}
	return gate.Plain(strings.Join(parts, " · "), 120)
}

// actor is a caller beside its client; "" for the person of this machine.
func actor(ref string) string {
	if name := strings.TrimPrefix(ref, "actor:"); !strings.HasSuffix(name, "/"+tool.Local) {
		return name
	}
	return ""
}
