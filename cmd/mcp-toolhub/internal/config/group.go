package config

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// The defaults of upstream, for checks that compare a given timeout with one that is not given.
const (
	defaultConnect = 30 * time.Second
	defaultCall    = 30 * time.Minute
	defaultCallMax = 30 * time.Minute
)

// servers makes the configuration of every server, in the order of the file. h is what holds for all of them.
func (r *reader) servers(entries []shape.Entry[server], h *hub) []upstream.ServerConfig {
	var configs []upstream.ServerConfig
	ids := map[string]shape.Entry[server]{}
	for _, e := range entries {
		leave := r.At(e.Path)
		id := r.serverID(e)
		if first, twice := ids[id]; twice && id != "" {
			r.Fault(e.Key, fmt.Sprintf("the server id %s is taken by %s at %s", shape.Quote(id), first.Path,
				r.Place(first.Key)),
				"rename one of the two")
		} else {
			ids[id] = e
		}
		// anything else was reported, and nothing can be added
		if e.Node.Kind == textfile.Mapping || e.Node.Kind == textfile.Null {
			c := serverReader{r, e}.config(id)
			c.Limits = upstream.Limits{Message: cmp.Or(c.Limits.Message, h.limits.Message),
				HiddenText: cmp.Or(c.Limits.HiddenText, h.limits.HiddenText)}
			r.passOn(&c, h.env, e.Value.env.Value)
			configs = append(configs, c)
			r.outOfUse = append(r.outOfUse, r.toolsOutOfUse(id, &e.Value)...)
			if names := credentialsOf(e.Node, r.references); len(names) > 0 {
				r.credentials[id] = names
			}
		}
		leave()
	}
	return configs
}

// toolsOutOfUse returns the facts that take tools of a server out of use.
func (r *reader) toolsOutOfUse(id string, v *server) (all []facts.Override) {
	canonical := func(given []shape.Located[string]) (names []string) {
		for _, one := range given {
			if one.OK {
				one.Value = string(tool.MCPName(id, one.Value))
				r.canonical(one)
				names = append(names, one.Value)
			}
		}
		return names
	}
	for _, name := range canonical(v.disabledTools) {
		all = append(all, facts.Override{Match: name, Disabled: true})
	}
	if used := canonical(v.enabledTools); len(used) > 0 {
		all = append(all, facts.Override{Match: string(tool.MCPName(id, "*")), Except: used, Disabled: true})
	}
	return all
}

// serverID is the entry's name where that is an id, otherwise the id made of it: clients take any name.
func (r *reader) serverID(e shape.Entry[server]) string {
	id := e.Name
	if !plainName.MatchString(id) {
		id = normalise(e.Name)
		switch {
		case id == "":
			r.Fault(e.Key, "a server id without a letter or digit", "use lower-case letters, digits, - and _")
			return ""
		case len(id) > 64:
			r.Fault(e.Key, "a server id of more than 64 characters", "shorten it: it is part of every tool's name")
			return ""
		}
		r.Warn(e.Key, "the server is called "+shape.Quote(id)+" in the hub",
			"ids are lower-case letters, digits, - and _")
	}
	if slices.Contains(toolsets(), id) {
		r.Fault(e.Key, "the server id "+shape.Quote(id)+" is the name of a built-in toolset", "rename the server")
	}
	if id == tool.ResultsServer {
		r.Fault(e.Key, "the server id "+shape.Quote(id)+" is reserved: toolhub://results/ID is a stored result",
			"rename the server")
	}
	return id
}

// normalise makes an id of any name: lower case, one - for each run of what an id cannot hold.
func normalise(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-'
	})
	return strings.TrimLeft(strings.Join(words, "-"), "-_")
}

// serverReader makes the configuration of one server. The key path is its entry's.
type serverReader struct {
	*reader
	entry shape.Entry[server]
}

func (r serverReader) config(id string) upstream.ServerConfig {
	v := &r.entry.Value
	c := v.ServerConfig
	c.ID, c.Lazy, c.Isolated = id, v.start == "lazy", v.isolation == "session"
	c.Shared = v.isolation == "shared"
	c.MaxSessions = v.maxSessions.Value
	if c.Isolated || v.oauth.Value.identity.Value == perCaller {
		c.SessionIdle = v.idleStop.Value
	} else {
		c.IdleStop = v.idleStop.Value
		pointless(r, v.maxSessions, v.maxSessions.Present && (c.Shared || v.command.Value == ""),
			"it takes isolation: session or oauth: {identity: caller}")
	}
	c.Transport = r.transport()
	if c.Transport == upstream.Stdio {
		c.Command, c.Args = r.vars.tilde(v.command.Value), v.args.Value
		c.Env, c.Dir = r.childEnv(), r.vars.path(v.cwd.Value)
		pointless(r, v.headers, len(v.headers.Value) > 0, "a command takes no headers")
		pointless(r, v.oauth, v.oauth.Present, "a command signs in by itself")
	} else {
		c.URL, c.Headers, c.OAuth = v.url.Value, r.headerMap(v.headers), r.oauth()
		pointless(r, v.oauth, v.oauth.Present && !c.SignsIn(), "headers give Authorization")
		pointless(r, v.args, len(v.args.Value) > 0, "only a command takes args")
		pointless(r, v.env, len(v.env.Value) > 0, "only a command takes env")
		pointless(r, v.envFile, v.envFile.Present, "only a command takes envFile")
		pointless(r, v.cwd, v.cwd.Present, "only a command takes cwd")
	}
	c.Timeouts = r.timeouts()
	c.Missing = missingOf(v.missing)
	for _, key := range []string{"env", "envFile", "headers", "oauth"} {
		if n := r.entry.Node.Member(key); n != nil {
			c.Account = tool.Digest(append([]byte(c.Account+key), policy.JSONOf(n)...))
		}
	}
	if !c.Disabled && r.startsItself(&c) {
		r.Fault(r.entry.Key, "this entry starts the hub on this very file, so it would start itself without end",
			"write the servers that the hub serves into a file of their own, without this entry")
	}
	return c
}

// missingOf says which references of an entry have no value, and what to do about it.
func missingOf(faults textfile.Faults) upstream.Missing {
	var what, hints []string
	for _, f := range faults {
		if !slices.Contains(hints, f.Hint) {
			hints = append(hints, f.Hint)
		}
		f.Hint = ""
		what = append(what, f.Error())
	}
	return upstream.Missing{What: strings.Join(what, "; "), Hint: strings.Join(hints, "; ")}
}

// transport decides how the server is reached and reports what is missing or too much for that.
func (r serverReader) transport() upstream.Transport {
	v := &r.entry.Value
	address := v.url
	if v.command.Present && address.Present {
		shape.FaultOf(r.Reader, address, "both a command and a url",
			"keep command for a program, url for a remote server")
		return upstream.Stdio
	}
	kind := v.kind.Value
	switch {
	case v.kind.Present && !v.kind.OK:
		// Reported already; go by what else is there.
	case kind == "stdio" && address.Present:
		shape.FaultOf(r.Reader, v.kind, "a server of type stdio with a url",
			`write type: http, or a command instead of the url`)
	case kind == "stdio" && !v.command.Present:
		r.absent("the key command is missing", "add the program that is the server")
	case kind != "" && kind != "stdio" && v.command.Present:
		shape.FaultOf(r.Reader, v.kind, "a server of type "+kind+" with a command",
			"write type: stdio, or a url instead of the command")
	case !v.command.Present && !address.Present && kind != "":
		r.absent("the key url is missing", "add the address of the server")
	case !v.command.Present && !address.Present:
		r.absent("neither a command nor a url", "add command for a program, url for a remote server")
	}
	switch {
	case v.command.Present || kind == "stdio" || !address.Present:
		return upstream.Stdio
	case kind == "sse" || kind == "" && !strings.HasSuffix(address.Path, httpURL) && endsInSSE(address.Value):
		return upstream.SSE
	}
	return upstream.StreamableHTTP
}

// absent reports that an entry does not say where its server is, unless it tries to: a misspelt command is one fault.
func (r serverReader) absent(message, hint string) {
	wanted, known := []string{"command", "url", httpURL, "serverUrl"}, serverShape(false).Known()
	for _, m := range r.entry.Node.Members {
		if !slices.Contains(wanted, m.Key) && slices.Contains(wanted, textfile.Nearest(m.Key, known)) {
			return
		}
	}
	r.Fault(r.entry.Key, message, hint)
}

func endsInSSE(address string) bool {
	u, err := url.Parse(address)
	return err == nil && strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/sse")
}

// pointless warns of a key that the server's transport has no use for.
func pointless[V any](r serverReader, v shape.Located[V], there bool, why string) {
	if there {
		shape.WarnOf(r.Reader, v, "ignored", why)
	}
}

// childEnv joins envFile and env; env wins.
func (r serverReader) childEnv() []string {
	values := r.envFile(r.entry.Value.envFile)
	for _, e := range r.entry.Value.env.Value {
		values[e.Name] = e.Value
	}
	var env []string
	for name, value := range values {
		if value != unset {
			env = append(env, name+"="+value)
		}
	}
	slices.Sort(env)
	return env
}

func (r serverReader) headerMap(h shape.Located[[]shape.Entry[string]]) map[string]string {
	if len(h.Value) == 0 {
		return nil
	}
	headers := map[string]string{}
	first := map[string]textfile.Position{}
	for _, e := range h.Value {
		name := http.CanonicalHeaderKey(e.Name)
		if at, twice := first[name]; twice {
			leave := r.At(e.Path)
			r.Fault(e.Key, "the same header as at "+r.Place(at), "keep one of the two: case does not count")
			leave()
			continue
		}
		first[name] = e.Key
		headers[e.Name] = e.Value
	}
	return headers
}

// timeouts completes what was given, so that a call's timeout is never above its maximum.
func (r serverReader) timeouts() upstream.Timeouts {
	v := &r.entry.Value
	call, most := r.span(end{v.timeout, "timeout", defaultCall}, end{v.timeoutMax, "timeout_max", defaultCallMax})
	t := upstream.Timeouts{Call: call, CallMax: most}
	if call > defaultConnect {
		t.Connect, t.List = call, call
	}
	return t
}

// end is one end of a span of time: as it was given, and what it is where it was not.
type end struct {
	shape.Located[time.Duration]
	name  string
	usual time.Duration
}

// span reports a low end above the high one. Where only one of the two is given and the other's default does not fit,
// the other follows it.
func (r *reader) span(low, high end) (l, h time.Duration) {
	l, h = low.Value, high.Value
	switch {
	case low.OK && high.OK && l > h:
		shape.FaultOf(r.Reader, low.Located, low.name+" is longer than "+high.name, "raise "+high.name+" or lower "+
			low.name)
	case low.OK && !high.Present && l > high.usual:
		h = l
	case high.OK && !low.Present && h < low.usual:
		l = h
	}
	return l, h
}
