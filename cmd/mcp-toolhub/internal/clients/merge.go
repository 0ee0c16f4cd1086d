package clients

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// Merged is a server that one or more clients have.
type Merged struct {
	Server
	Origins []string          // of all of them
	Secrets map[string]string // that MoveSecrets has taken out of it, by name
	Notes   []string          // for people: what somebody has to do
}

// Merge joins servers that are the same, also under different names, and leaves out hubs. The
// result is disabled if every client has disabled the server. A tool is in use if it is in any
// client that has not.
func Merge(all []Server) []*Merged {
	var merged []*Merged
	for _, s := range all {
		if s.IsHub() {
			continue
		}
		i := slices.IndexFunc(merged, func(m *Merged) bool { return m.Same(s) })
		if i < 0 {
			merged = append(merged, &Merged{Server: s, Origins: []string{s.Origin}})
			continue
		}
		m := merged[i]
		m.Origins = append(m.Origins, s.Origin)
		m.Off, m.On = inUse(&m.Server, &s)
		m.Timeout = longer(m.Timeout, s.Timeout)
		m.Disabled = m.Disabled && s.Disabled
		if m.project != s.project {
			m.project = ""
		}
		if m.SignIn.ID == "" {
			m.SignIn = s.SignIn
		}
	}
	return merged
}

// longer returns the longer one of two timeouts. A client without one may wait as long as the hub does by default.
func longer(a, b time.Duration) time.Duration {
	if d := max(cmp.Or(a, usualTimeout), cmp.Or(b, usualTimeout)); d != usualTimeout || a != 0 && b != 0 {
		return d
	}
	return 0
}

// inUse returns which tools are in use at one of two clients, as Server has it.
func inUse(a, b *Server) (off, on []string) {
	switch {
	case b.Disabled:
		return a.Off, a.On
	case a.Disabled:
		return b.Off, b.On
	case len(a.On) == 0 && len(b.On) > 0:
		return inUse(b, a)
	}
	uses := func(s *Server, tool string) bool {
		return !slices.Contains(s.Off, tool) && (len(s.On) == 0 || slices.Contains(s.On, tool))
	}
	for _, tool := range slices.Concat(a.Off, b.Off) {
		if !uses(a, tool) && !uses(b, tool) && !slices.Contains(off, tool) {
			off = append(off, tool)
		}
	}
	for _, tool := range slices.Concat(a.On, b.On) {
		if len(b.On) > 0 && !slices.Contains(on, tool) {
			on = append(on, tool)
		}
	}
	return off, on
}

// Entry returns the server as an entry of the hub's config.
func (m *Merged) Entry() splice.Object {
	var o splice.Object
	add := func(key, value string) {
		if value != "" {
			o = append(o, splice.Member{Key: key, Value: value})
		}
	}
	pairs := func(key string, all []Pair) {
		var inner splice.Object
		for _, p := range all {
			inner = append(inner, splice.Member{Key: p.Name, Value: p.Value})
		}
		if len(inner) > 0 {
			o = append(o, splice.Member{Key: key, Value: inner})
		}
	}
	switch {
	case m.SSE:
		add("type", "sse")
	case m.URL != "" && strings.HasSuffix(m.URL, "/sse"):
		add("type", "http")
	}
	if m.URL != "" {
		add("url", m.URL)
		pairs("headers", m.Headers)
		if id := m.SignIn; id.ID != "" {
			o = append(o, splice.Member{Key: "oauth", Value: id.entry()})
		}
	} else {
		add("command", m.Command)
		if len(m.Args) > 0 {
			o = append(o, splice.Member{Key: "args", Value: m.Args})
		}
		pairs("env", m.Env)
		add("envFile", m.EnvFile)
		add("cwd", m.Dir)
	}
	if m.Timeout > 0 {
		add("timeout", shape.Short(m.Timeout))
	}
	if m.Disabled {
		o = append(o, splice.Member{Key: "disabled", Value: true})
	}
	if len(m.Off) > 0 {
		o = append(o, splice.Member{Key: "disabledTools", Value: m.Off})
	}
	if len(m.On) > 0 {
		o = append(o, splice.Member{Key: "enabledTools", Value: m.On})
	}
	return o
}

func (id SignIn) entry() splice.Object {
	o := splice.Object{{Key: "client_id", Value: id.ID}}
	if id.Secret != "" {
		o = append(o, splice.Member{Key: "client_secret", Value: id.Secret})
	}
	if id.Redirect != "" {
		o = append(o, splice.Member{Key: "redirect", Value: id.Redirect})
	}
	if len(id.Scopes) > 0 {
		o = append(o, splice.Member{Key: "scopes", Value: id.Scopes})
	}
	return o
}

// Line says what the server runs or reaches, without secrets.
func (s *Server) Line() string {
	if s.URL != "" {
		return Mask(s.URL)
	}
	return Mask(strings.Join(append([]string{s.Command}, s.Args...), " "))
}

// ownReferences are the references that look like variables and are none.
var ownReferences = []string{"workspaceFolder", "workspaceFolderBasename", "userHome", "pathSeparator"}

var variable = regexp.MustCompile(`(\$?)\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}`)

// texts are the texts of the server's entry that may hold references.
func (s *Server) texts() []string {
	texts := append([]string{s.Command, s.URL, s.Dir, s.EnvFile, s.SignIn.ID, s.SignIn.Secret}, s.Args...)
	for _, p := range slices.Concat(s.Env, s.Headers) {
		texts = append(texts, p.Value)
	}
	return texts
}

// References returns what the server's entry refers to, such as TOKEN, file:~/token and secret:NAME, without defaults.
func (s *Server) References() (all []string) {
	for _, text := range s.texts() {
		for _, found := range referring.FindAllString(text, -1) {
			name, _, _ := strings.Cut(strings.Trim(found, "${}"), ":-")
			if !strings.HasPrefix(found, "$$") && !slices.Contains(append(all, ownReferences...), name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// Variables returns the names of the environment variables that the server's entry refers to without a default.
func (s *Server) Variables() []string {
	var names []string
	for _, text := range s.texts() {
		for _, found := range variable.FindAllStringSubmatch(text, -1) {
			if found[1] == "" && !slices.Contains(ownReferences, found[2]) && !slices.Contains(names, found[2]) {
				names = append(names, found[2])
			}
		}
	}
	return names
}

// ownWords returns the client whose file has entries as Claude Code's, with words that only this
// client has; "" for none.
func ownWords(f *splice.File) string {
	mcp := f.At("mcp")
	if mcp != nil && (mcp.Member("allowed") != nil || mcp.Member("excluded") != nil) {
		return "gemini"
	}
	for _, e := range f.Entries(splice.Place{Path: []string{"mcpServers"}}) {
		switch tools := e.Value.Member("tools"); {
		case e.Value.Member("httpUrl") != nil, e.Value.Member("includeTools") != nil,
			e.Value.Member("excludeTools") != nil:
			return "gemini"
		case tools != nil && tools.Kind == textfile.List:
			return "copilot"
		}
	}
	return ""
}
