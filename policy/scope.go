package policy

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// Scope is one target, or a range of targets, that a grant covers.
type Scope struct {
	Kind       target.Kind `json:"kind"`
	Under      string      `json:"under,omitempty"`      // a path: it and what is beneath it
	Host       string      `json:"host,omitempty"`       // of a URL
	Executable string      `json:"executable,omitempty"` // of a command
	// the name by which the executable is called, where that is not its own
	As  string `json:"as,omitempty"`
	CWD string `json:"cwd,omitempty"` // where the command runs
	// JSON pointer, of a resource: ids mean something in their place only
	Argument string `json:"argument,omitempty"`
	Resource string `json:"resource,omitempty"` // the id
	Remote   bool   `json:"remote,omitempty"`   // the path is on another machine
	Write    bool   `json:"write,omitempty"`    // writing, too
}

// same reports whether the scope is about t, whatever of reading and writing.
func (s *Scope) same(t *target.Target, cwd string) bool {
	if s.Kind != t.Kind || t.Fault != "" {
		return false
	}
	switch s.Kind {
	case target.Path:
		return s.Remote == t.Remote && isNormal(t.Resolved) && target.Under(t.Resolved, s.Under)
	case target.URL:
		return s.Host != "" && s.Host == t.Host
	case target.Command:
		return s.Executable != "" && s.Executable == t.Executable && s.As == t.As && s.CWD == cwd
	case target.Resource:
		return s.Resource != "" && s.Resource == t.Resolved && s.Argument == t.Argument
	}
	return false
}

// isUnbounded reports whether a target may reach further than its spelling says, so that no scope holds it: it runs any
// program, stands for several paths, is read differently by different programs, or writes to a file with other names.
func isUnbounded(t *target.Target) bool {
	for _, n := range t.Notes {
		switch n {
		case target.ShellText, target.Wrapper, target.Code, target.Wildcard, target.KeyVariant:
			return true
		case target.HardLink:
			if t.Write {
				return true
			}
		}
	}
	return false
}

// isUnaimed reports whether nothing but its arguments bounds a call of a dangerous tool.
func isUnaimed(r *Request) bool { return len(r.Targets) == 0 && r.Facts.Has(dangerous) }

// isSensitive reports whether only a grant for this very path covers it.
func (r *Request) isSensitive(path string) bool {
	return slices.ContainsFunc(r.Findings,
		func(f target.Finding) bool { return f.Code == target.Sensitive && f.Target.Resolved == path })
}

// maxScopes bounds what a person has to read of one grant.
const maxScopes = 64

// Scopes returns the scopes of a grant for r: what a call like r would be aimed at. ok is false
// where only exactly these arguments could be remembered. It may look at the file system.
func (e *Engine) Scopes(r Request) (scopes []Scope, ok bool) {
	prepare(&r)
	return e.scopes(&r)
}

// scopes returns the scopes of a grant for r. ok is false where only exactly these arguments can
// be granted: for an unknown command or one that runs other commands, for a target that has no
// normal form or holds a secret, and for a dangerous tool without targets.
func (e *Engine) scopes(r *Request) (scopes []Scope, ok bool) {
	if isUnaimed(r) {
		return nil, false
	}
	scopes = make([]Scope, 0, len(r.Targets))
	for i := range r.Targets {
		t := &r.Targets[i]
		one := Scope{Kind: t.Kind, Write: t.Write}
		switch t.Kind {
		case target.Path:
			one.Under, one.Remote = t.Resolved, t.Remote
			if !t.Remote && !r.isSensitive(t.Resolved) {
				one.Under = DirectoryOf(e.settings.Home, t.Resolved)
			}
		case target.URL:
			one.Host = t.Host
		case target.Command:
			if one.Executable, one.As, one.CWD = t.Executable, t.As, r.CWD; target.RunsArguments(t.Executable) {
				return nil, false
			}
		case target.Resource:
			one.Resource, one.Argument = t.Resolved, t.Argument
		}
		if named := one.Under + one.Resource; secret.Text(named, false) != named {
			return nil, false // scopes are shown, and kept in a file
		}
		if !one.same(t, r.CWD) || isUnbounded(t) {
			return nil, false
		}
		if !slices.Contains(scopes, one) {
			scopes = append(scopes, one)
		}
		if len(scopes) > maxScopes {
			return nil, false
		}
	}
	return scopes, true
}

// isNormal reports whether p is an absolute path without dot segments and doubled separators. Only
// such a path can be compared with a directory.
func isNormal(p string) bool {
	windows := len(p) > 2 && p[1] == ':' && (p[2] == '\\' || p[2] == '/') || strings.HasPrefix(p, `\\`)
	if !windows && !strings.HasPrefix(p, "/") {
		return false
	}
	rest := p
	if windows {
		rest = strings.ReplaceAll(p[2:], `\`, "/")
	}
	for i, segment := range strings.Split(strings.TrimSuffix(rest, "/"), "/") {
		if segment == "." || segment == ".." || segment == "" && i > 0 {
			return false
		}
	}
	return true
}

// digestCall is the digest of exactly this call: of its arguments, and of the targets that they resolve to now.
func digestCall(r *Request) string {
	var b bytes.Buffer
	if err := json.Compact(&b, r.Input); err != nil {
		b.Reset()
		b.Write(r.Input)
	}
	targets, err := json.Marshal(r.Targets)
	if err != nil {
		targets = nil // cannot be: nothing in it but strings
	}
	cwd, err := json.Marshal(r.CWD)
	if err != nil {
		cwd = nil
	}
	for _, part := range [][]byte{targets, cwd} {
		b.WriteByte('\n') // stands in no compact JSON
		b.Write(part)
	}
	return "sha256:" + tool.Digest(b.Bytes())
}
