package clients

import (
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
)

// Merged is a server that one or more clients have.
type Merged struct {
	Server
	Origins []string          // of all of them
	Secrets map[string]string // that MoveSecrets has taken out of it, by name
	Notes   []string          // for people: what somebody has to do
}

// Merge joins servers that are the same, also under different names, and leaves out hubs. The result is disabled if every client has
// disabled the server. A tool is out of use if every client has put it out of use.
func Merge(all []Server) []*Merged {
	var merged []*Merged
	for _, s := range all {
		if s.IsHub() || s.Name == EntryName && s.URL != "" {
			continue
		}
		i := slices.IndexFunc(merged, func(m *Merged) bool { return m.Same(s) })
		if i < 0 {
			merged = append(merged, &Merged{Server: s, Origins: []string{s.Origin}})
			continue
		}
		m := merged[i]
		m.Origins = append(m.Origins, s.Origin)
		m.Disabled = m.Disabled && s.Disabled
		m.Off = slices.DeleteFunc(m.Off, func(tool string) bool { return !slices.Contains(s.Off, tool) })
		if !slices.Equal(m.On, s.On) {
			m.On = nil
		}
	}
	return merged
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
	} else {
		add("command", m.Command)
		if len(m.Args) > 0 {
			o = append(o, splice.Member{Key: "args", Value: m.Args})
		}
		pairs("env", m.Env)
		add("envFile", m.EnvFile)
		add("cwd", m.Dir)
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

// Line says what the server runs or reaches, without secrets.
func (s *Server) Line() string {
	if s.URL != "" {
		return Mask(s.URL)
	}
	return Mask(strings.Join(append([]string{s.Command}, s.Args...), " "))
}

var variable = regexp.MustCompile(`(\$?)\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}`)

// Variables returns the names of the environment variables that the server's entry refers to without a default.
func (s *Server) Variables() []string {
	texts := append([]string{s.Command, s.URL, s.Dir, s.EnvFile}, s.Args...)
	for _, p := range slices.Concat(s.Env, s.Headers) {
		texts = append(texts, p.Value)
	}
	own := []string{"workspaceFolder", "workspaceFolderBasename", "userHome", "pathSeparator"}
	var names []string
	for _, text := range texts {
		for _, found := range variable.FindAllStringSubmatch(text, -1) {
			if found[1] == "" && !slices.Contains(own, found[2]) && !slices.Contains(names, found[2]) {
				names = append(names, found[2])
			}
		}
	}
	return names
}
