package downstream

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// surfaceReader says what callers see and what that can do: it serves lists, capabilities and instructions.
type surfaceReader struct {
	*parts
}

// of returns what p sees now.
func (v *surfaceReader) of(p *peer) (*tool.Surface, *tool.RPCError) {
	surface, err := v.deps.Surfaces.Surface(p.profile, p.actor)
	if err != nil {
		return nil, &tool.RPCError{Code: tool.CodeInternalError, Message: err.Error()}
	}
	return surface, nil
}

// awaitLists waits for the first lists of the servers of surface, the one of p, and returns what p sees then.
func (v *surfaceReader) awaitLists(ctx context.Context, p *peer, surface *tool.Surface) (*tool.Surface,
	*tool.RPCError) {
	v.deps.Surfaces.FirstLists(ctx, surface)
	return v.of(p)
}

// forList returns what p sees, for a list of that method. Some clients list only once: so a list
// waits for servers that are starting. Nobody waits for tools where a search is listed: it finds
// them later.
func (v *surfaceReader) forList(ctx context.Context, p *peer, method string) (*tool.Surface, *tool.RPCError) {
	surface, refusal := v.of(p)
	if refusal != nil || method == tool.MethodToolsList && surface.Finder() != "" {
		return surface, refusal
	}
	return v.awaitLists(ctx, p, surface)
}

// find runs look, which says what it does not find on what p sees. A server that has not listed yet
// may have that: look then runs once more.
func (v *surfaceReader) find(ctx context.Context, p *peer, look func(*tool.Surface) *tool.RPCError) *tool.RPCError {
	surface, refusal := v.of(p)
	if refusal != nil {
		return refusal
	}
	if refusal = look(surface); refusal != nil {
		if surface, refusal = v.awaitLists(ctx, p, surface); refusal == nil {
			refusal = look(surface)
		}
	}
	return refusal
}

// forCall returns what p sees, for a call of name. An unknown name may be that of a tool whose
// server has not listed yet. It waits for a tool that is hidden from p as for one that nobody has:
// the time tells no difference.
func (v *surfaceReader) forCall(ctx context.Context, p *peer, name string) (*tool.Surface, *tool.RPCError) {
	surface, refusal := v.of(p)
	if refusal != nil {
		return nil, refusal
	}
	if _, known := surface.Resolve(name); known {
		return surface, nil
	}
	p.arrival.StandAside(ctx)
	return v.awaitLists(ctx, p, surface)
}

// forBatch is forCall for all calls of a batch, whose own name is known. surface is what p sees now.
func (v *surfaceReader) forBatch(ctx context.Context, p *peer, surface *tool.Surface,
	args json.RawMessage) (*tool.Surface, *tool.RPCError) {
	calls, _ := rawjson.Get(args, "calls")
	unknown := ""
	_ = rawjson.Elements(calls, func(call []byte) bool {
		name, _ := rawjson.GetString(call, "name")
		_, known := surface.Resolve(name)
		if !known {
			unknown = name
		}
		return known
	})
	if unknown == "" {
		return surface, nil
	}
	return v.forCall(ctx, p, unknown)
}

// soleServer returns the server of a direct view.
func (v *surfaceReader) soleServer(p *peer) (string, *tool.RPCError) {
	surface, refusal := v.of(p)
	if refusal != nil {
		return "", refusal
	}
	if surface.Features == nil || len(surface.Features.Servers) != 1 {
		return "", &tool.RPCError{Code: tool.CodeMethodNotFound, Message: "no server takes this here"}
	}
	return surface.Features.Servers[0], nil
}

// abilities returns what the surface can do besides tools. A server that has not been up yet counts
// as one that can do everything but tasks, which few can: what a client is told at its beginning
// holds to the end of its session.
func (v *surfaceReader) abilities(surface *tool.Surface) tool.Abilities {
	f := surface.Features
	if f == nil {
		return tool.Abilities{}
	}
	able := f.Abilities
	for _, st := range v.deps.Status.Servers() {
		if !st.Known && (st.State == tool.ServerStarting || st.State == tool.ServerBackoff) &&
			slices.Contains(f.Servers, st.Server) {
			able = able.Or(tool.Abilities{Prompts: true, Resources: true, Subscribe: true, Completions: true,
				Logging: true})
		}
	}
	return able
}

// shows reports whether the listener's surface shows the server.
func (v *surfaceReader) shows(l *listener, server string) bool {
	surface, err := v.deps.Surfaces.Surface(l.profile, tool.Actor{Client: l.actor.Client})
	return err == nil && surface.Features != nil && slices.Contains(surface.Features.Servers, server)
}

// description returns the capabilities and the instructions of a surface, as the client gets them. On
// a direct view "experimental" and "extensions" are as the server wrote them.
func (v *surfaceReader) description(profile string, client tool.Client) (caps []byte, instructions string) {
	caps, instructions = []byte("{"), v.cfg().Instructions
	add := func(has bool, name, value string) {
		if has {
			caps = rawjson.AppendMember(caps, name, []byte(value))
		}
	}
	var able tool.Abilities
	surface, err := v.deps.Surfaces.Surface(profile, tool.Actor{Client: client})
	if err == nil && surface.Features != nil {
		able, instructions = v.abilities(surface), v.instructions(surface.Features)
	}
	add(able.Completions, "completions", "{}")
	add(able.Logging, "logging", "{}")
	add(able.Prompts, "prompts", `{"listChanged":true}`)
	switch {
	case able.Resources && able.Subscribe:
		add(true, "resources", `{"listChanged":true,"subscribe":true}`)
	case able.Resources:
		add(true, "resources", `{"listChanged":true}`)
	default:
		add(err == nil && surface.Results.Cuts(), "resources", "{}") // stored results are resources
	}
	add(true, "tools", `{"listChanged":true}`)
	add(direct(profile) && able.Experimental != "", "experimental", able.Experimental)
	extensions := extensionsOf(able, profile, client)
	add(!empty(extensions), "extensions", string(extensions))
	if t := able.Tasks; client.ProtocolVersion == tasksSince && t != (tool.Tasks{}) {
		tasks := []byte("{")
		if t.List {
			tasks = rawjson.AppendMember(tasks, "list", []byte("{}"))
		}
		if t.Cancel {
			tasks = rawjson.AppendMember(tasks, "cancel", []byte("{}"))
		}
		if t.Calls {
			tasks = rawjson.AppendMember(tasks, "requests", []byte(`{"tools":{"call":{}}}`))
		}
		add(true, "tasks", string(tasks)+"}")
	}
	return append(caps, '}'), instructions
}

// extensionsOf returns the extensions of the protocol that a client can use: tasks where its revision has
// them, and on a direct view what else the server has.
func extensionsOf(able tool.Abilities, profile string, client tool.Client) (extensions []byte) {
	extensions = []byte("{}")
	if direct(profile) && able.Extensions != "" {
		extensions = []byte(able.Extensions)
	}
	_, has := rawjson.Get(extensions, tool.TaskExtension)
	switch follows := client.ProtocolVersion >= modernVersion && able.TaskExtension; {
	case has && !follows:
		extensions, _, _ = rawjson.Delete(extensions, tool.TaskExtension) // nil for what is no object
	case !has && follows:
		extensions, _ = rawjson.Set(extensions, tool.TaskExtension, []byte("{}"))
	}
	return extensions
}

// maxInstructions bounds the characters of instructions for a client. Claude Code cuts off the rest after some 4,100.
const maxInstructions = 4000

// instructions returns what clients' models are told at the beginning: the sentence that names all servers, then the
// instructions of the config, then those of the servers.
func (v *surfaceReader) instructions(f *tool.Features) string {
	var parts []string
	for _, part := range []string{f.Headline, strings.TrimSpace(v.cfg().Instructions), f.Instructions} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	text := strings.Join(parts, "\n\n")
	if all := []rune(text); f.Headline != "" && len(all) > maxInstructions {
		text = string(all[:maxInstructions-1]) + "…"
	}
	return text
}

// withCapabilities writes a result with these capabilities.
func withCapabilities(result any, caps []byte) ([]byte, error) {
	text, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	return rawjson.Set(text, "capabilities", caps)
}

// listChanges returns the notifications of changes of those lists that a session's client knows to exist.
func (v *surfaceReader) listChanges(sess *httpSession) []string {
	all := []string{tool.NoteToolsChanged}
	surface, err := v.deps.Surfaces.Surface(sess.profile, sess.actor)
	if err != nil {
		return all
	}
	able := v.abilities(surface)
	if able.Prompts {
		all = append(all, tool.NotePromptsChanged)
	}
	if able.Resources {
		all = append(all, tool.NoteResourcesChanged)
	}
	return all
}
