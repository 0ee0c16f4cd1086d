package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/code"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/deferred/embed"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// build makes the settings and checks what takes more than one value to see. What it returns counts only where r has
// no fault.
func build(r *reader, root *textfile.Node, f *file, state string) *Settings {
	s := &Settings{StateDir: state}
	s.Upstream.StartParallel = f.hub.startParallel
	s.Upstream.Memory = f.hub.limits.memory
	s.Upstream.FirstListWithin = f.hub.firstListWithin.or(5 * time.Second)
	retry, up := f.hub.retry, &s.Upstream
	up.RetryMin, up.RetryMax = r.span(end{retry.min, "min", defaultRetryMin}, end{retry.max, "max", defaultRetryMax})
	up.RetryBudget, up.RetryRest = retry.budget, retry.rest
	s.Upstream.Servers = r.servers(slices.Concat(f.mcpServers, f.servers), f.hub.limits.limits)
	s.Credentials = r.credentials
	s.Code = r.code(f.hub.code)
	s.Declarative = r.declarative(&f.hub.declarative, s.Code.Root)
	permission := policyReader{r, f.policy}
	s.Policy, s.RuleFiles = permission.config()
	s.Downstream = r.door(&f.hub)
	s.LogLevel, s.LogFormat = cmp.Or(f.hub.log.level, "info"), cmp.Or(f.hub.log.format, "auto")
	s.Journal = persist.JournalConfig{
		Dir:      cmp.Or(r.vars.path(f.journal.dir.value), filepath.Join(state, "journal")),
		MaxBytes: f.journal.maxBytes, MaxFiles: f.journal.maxFiles, MaxAge: f.journal.maxAge,
		SyncWithin: f.journal.sync.or(5 * time.Millisecond),
	}
	r.origins = append(s.Upstream.IDs(), toolsets()...)
	s.Profiles = []namespace.Profile{{Name: namespace.DefaultProfile, Style: namespace.StyleAuto}}
	s.Deferred = r.deferred(f.deferred)
	if e := f.deferred.embeddings; e.present {
		s.Embeddings = embed.Config{URL: e.value.url, Model: e.value.model, Key: e.value.key, Timeout: e.value.timeout,
			Dir: filepath.Join(state, "embeddings")}
	}
	s.Deferred.Profiles[namespace.DefaultProfile] = s.Deferred.Default
	for _, e := range f.profiles {
		p := r.profile(e)
		s.Deferred.Profiles[p.Name] = foundByOverrides(r.deferral(e.value.deferred, s.Deferred.Default), p.Tools)
		if p.Name == namespace.DefaultProfile {
			s.Profiles[0] = p
		} else {
			s.Profiles = append(s.Profiles, p)
		}
	}
	permission.strayRules(s)
	s.Uses = usesOf(f, s)
	if len(f.mcpServers)+len(f.servers) == 0 && !s.Code.Enabled && !declares(s) {
		r.warn(root.Position, "no server and no toolset: the hub has nothing to offer", "add a server to mcpServers")
	}
	return s
}

// toolsets are the built-in ones: their names are the first words of canonical names.
func toolsets() []string { return []string{"code", "declarative", "hub"} }

func (r *reader) code(t located[codeToolset]) code.Config {
	if !t.present {
		return code.Config{}
	}
	var paths []string
	for _, p := range t.value.sensitivePaths {
		if p.ok && strings.HasPrefix(p.value, "~/") && r.vars.env.home() == "" {
			faultOf(r, p, "~ is not known", "set HOME (USERPROFILE on Windows), or write the path in full")
		}
		paths = append(paths, p.value)
	}
	var roots []string
	for _, p := range t.value.writeRoots {
		roots = append(roots, r.vars.path(p.value))
	}
	return code.Config{
		Enabled: t.value.enabled.or(true),
		Root:    r.vars.path(t.value.root.value), AllowedWriteRoots: roots,
		SensitivePaths: paths, Home: r.vars.env.home(), Run: r.runCommand(t.value.run),
	}
}

func (r *reader) door(h *hub) downstream.Config {
	c := downstream.Config{Name: h.name, Instructions: h.instructions, InputTimeout: h.inputTimeout, HTTP: h.http.HTTPConfig}
	c.HTTP.Listen = h.http.listen.value
	c.HTTP.NoDirectViews = !h.http.directViews.or(true)
	limitClients(&c, h.limits)
	once := func(seen map[string]located[string], v located[string], message, hint string) {
		if first, twice := seen[v.value]; v.ok && twice {
			faultOf(r, v, message+r.place(first.Position), hint)
		} else if v.ok {
			seen[v.value] = v
		}
	}
	names, secrets := map[string]located[string]{}, map[string]located[string]{}
	for _, t := range h.tokens {
		name, secret := t.value.name, t.value.secret
		once(names, name, "two tokens of the same name, the first at ", "give each token its own name")
		once(secrets, secret, "the same token as at ", "give each name a token of its own")
		c.Auth.Tokens = append(c.Auth.Tokens, downstream.Token{Name: name.value, Secret: secret.value})
	}
	if l := h.http.listen; l.ok && !loopback(l.value) && len(h.tokens) == 0 {
		faultOf(r, l, "other machines can reach this address, and there are no tokens",
			"add hub.auth.tokens, or listen on 127.0.0.1")
	}
	return c
}

func (r *reader) place(p textfile.Position) string {
	return fmt.Sprintf("%s:%d:%d", r.file, p.Line, p.Column)
}

func (r *reader) profile(e entry[profile]) namespace.Profile {
	v, origins := e.value, r.origins
	p := namespace.Profile{Name: e.name, Style: cmp.Or(namespace.Style(v.style), namespace.StyleAuto)}
	for _, s := range v.servers {
		if s.ok && !wildcard(s.value) && !slices.Contains(origins, s.value) {
			known := "the ids are: " + strings.Join(origins, ", ")
			faultOf(r, s, "no server or toolset has this id", textfile.DidYouMean(s.value, origins, known))
		}
		p.Servers = append(p.Servers, s.value)
	}
	for _, g := range slices.Concat(v.include, v.exclude) {
		r.canonical(g)
	}
	p.Include, p.Exclude = values(v.include), values(v.exclude)
	for _, o := range v.tools {
		r.override(o)
		p.Tools = append(p.Tools, namespace.Override{Match: o.value.match.value, Name: o.value.name.value,
			Title: o.value.title.value, Description: o.value.description.value, Hide: o.value.hide.value})
	}
	return p
}

// canonical notes a pattern over canonical names.
func (r *reader) canonical(g located[string]) {
	if g.ok {
		defer r.at(g.path)()
		r.pattern(g.Position, "matches no tool", Pattern{r.place(g.Position), g.path, g.value})
	}
}

// pattern warns of a pattern that cannot match a canonical name, the usual slip being a missing "mcp.", and notes any other.
func (r *reader) pattern(p textfile.Position, warning string, one Pattern) {
	first, _, dotted := strings.Cut(one.Text, ".")
	if wildcard(first) || first == "mcp" && dotted || slices.Contains(toolsets(), first) ||
		slices.Contains(r.hubTools, one.Text) {
		r.patterns = append(r.patterns, one)
		return
	}
	hint := `canonical names are mcp.<server>.<tool> and code.<tool>`
	if slices.Contains(r.origins, first) {
		hint = `did you mean "mcp.` + one.Text + `"?`
	}
	r.stray(p, warning, hint)
}

func (r *reader) override(o located[override]) {
	v := o.value
	r.canonical(v.match)
	if v.name.ok && v.match.ok && wildcard(v.match.value) {
		faultOf(r, v.name, "one name for a match with wildcards", "let match be the canonical name of one tool")
	}
	if o.ok && !v.name.present && !v.title.present && !v.description.present && !v.hide.present {
		warnOf(r, o, "changes nothing", "add name, title, description or hide")
	}
}
