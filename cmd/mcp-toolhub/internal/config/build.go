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
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// firstListWithin is hub.first_list_within where it is not given.
const firstListWithin = 5 * time.Second

// syncWithin is persist.journal.sync_within where it is not given.
const syncWithin = 5 * time.Millisecond

// build makes the settings and checks what takes more than one value to see. What it returns counts only where r has
// no fault.
func build(r *reader, root *textfile.Node, f *file, state string) *Settings {
	s := &Settings{StateDir: state}
	s.Upstream.StartParallel = f.hub.startParallel
	s.Upstream.Memory = f.hub.limits.memory
	s.Upstream.FirstListWithin = firstListWithin
	if own := f.hub.firstListWithin; own.ok {
		s.Upstream.FirstListWithin = own.value
	}
	r.retry(&s.Upstream, f.hub.retry)
	s.Upstream.Servers = r.servers(slices.Concat(f.mcpServers, f.servers), f.hub.limits.limits)
	s.Credentials = r.credentials
	s.Code = r.code(f.hub.code)
	s.Declarative = r.declarative(&f.hub.declarative, s.Code.Root)
	permission := policyReader{r, f.policy}
	s.Policy, s.RuleFiles = permission.config(), permission.ruleFiles()
	s.Downstream = r.door(&f.hub)
	s.LogLevel, s.LogFormat = cmp.Or(f.hub.log.level, "info"), cmp.Or(f.hub.log.format, "auto")
	s.Journal = persist.JournalConfig{
		Dir:      cmp.Or(r.vars.path(f.journal.dir.value), filepath.Join(state, "journal")),
		MaxBytes: f.journal.maxBytes, MaxFiles: f.journal.maxFiles, MaxAge: f.journal.maxAge,
		SyncWithin: syncWithin,
	}
	if own := f.journal.sync; own.ok {
		s.Journal.SyncWithin = own.value
	}

	origins := []string{}
	for _, server := range s.Upstream.Servers {
		origins = append(origins, server.ID)
	}
	r.origins = slices.Concat(origins, toolsets())
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

// retry reports a first pause above the longest. Where only one of the two is given and the other's default does not
// fit, the other follows it.
func (r *reader) retry(c *upstream.Config, v retry) {
	c.RetryMin, c.RetryMax, c.RetryBudget, c.RetryRest = v.min.value, v.max.value, v.budget, v.rest
	switch {
	case v.min.ok && v.max.ok && c.RetryMin > c.RetryMax:
		faultOf(r, v.min, "min is longer than max", "raise max or lower min")
	case v.min.ok && !v.max.present && c.RetryMin > defaultRetryMax:
		c.RetryMax = c.RetryMin
	case v.max.ok && !v.min.present && c.RetryMax < defaultRetryMin:
		c.RetryMin = c.RetryMax
	}
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
		Enabled: !t.value.enabled.present || t.value.enabled.value,
		Root:    r.vars.path(t.value.root.value), AllowedWriteRoots: roots,
		SensitivePaths: paths, Home: r.vars.env.home(), Run: r.runCommand(t.value.run),
	}
}

func (r *reader) door(h *hub) downstream.Config {
	c := downstream.Config{Name: h.name, Instructions: h.instructions, InputTimeout: h.inputTimeout, HTTP: h.http.HTTPConfig}
	c.HTTP.Listen = h.http.listen.value
	c.HTTP.NoDirectViews = h.http.directViews.present && !h.http.directViews.value
	limitClients(&c, h.limits)
	names, secrets := map[string]located[string]{}, map[string]located[string]{}
	for _, t := range h.tokens {
		name, secret := t.value.name, t.value.secret
		if name.ok {
			if first, twice := names[name.value]; twice {
				faultOf(r, name, "two tokens of the same name, the first at "+r.place(first.Position), "give each token its own name")
			} else {
				names[name.value] = name
			}
		}
		if secret.ok {
			if first, twice := secrets[secret.value]; twice {
				faultOf(r, secret, "the same token as at "+r.place(first.Position), "give each name a token of its own")
			} else {
				secrets[secret.value] = secret
			}
		}
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
			faultOf(r, s, "no server or toolset has this id", textfile.DidYouMean(s.value, origins, "the ids are: "+commas(origins)))
		}
		p.Servers = append(p.Servers, s.value)
	}
	for _, g := range v.include {
		r.canonical(g)
		p.Include = append(p.Include, g.value)
	}
	for _, g := range v.exclude {
		r.canonical(g)
		p.Exclude = append(p.Exclude, g.value)
	}
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
