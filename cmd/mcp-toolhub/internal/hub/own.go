package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/user"
	"strconv"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/console"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/limit"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// OwnTools is the toolbox of a hub in this process. Its calls go through the same pipeline as those of clients.
type OwnTools struct {
	Hub     *Hub
	Profile string
	Ask     tool.Asker        // puts the hub's questions to whoever sits at the terminal; nil where nobody does
	Meta    json.RawMessage   // of its calls
	Replays tool.InvocationID // the call that is made again; "" for none
}

// LocalActor returns the caller of the commands: the user who runs this process.
func LocalActor() tool.Actor {
	name := "local"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	return tool.Actor{Name: name, Door: "cli", Client: tool.Client{Name: "mcp-toolhub", Version: Version()}}
}

// Surface returns what the caller of the commands sees in the profile.
func (o OwnTools) Surface() (*tool.Surface, error) {
	return o.Hub.Surfaces.Surface(o.Profile, LocalActor())
}

// Missing says why there may be no tool of that name: its server, or any other, is not ready.
func (o OwnTools) Missing(name string) string {
	own, down := "", []string{}
	for _, st := range o.Hub.Group.Statuses() {
		if st.State != tool.ServerStarting && (st.State == tool.ServerReady || st.LastError == "") {
			continue
		}
		down = append(down, strconv.Quote(st.Server))
		if st.LastError != "" && isOf(name, st.Server) {
			own = fmt.Sprintf("server %q is not ready: %s", st.Server, st.LastError)
			if st.Hint != "" {
				own += "; " + st.Hint
			}
		}
	}
	if own != "" {
		return own
	}
	hint := "mcp-toolhub tools list names them"
	if surface, err := o.Surface(); err == nil {
		hint = ToolMeant(name, surface, hint)
	}
	if len(down) > 0 {
		hint += fmt.Sprintf(" (not ready: %s, see mcp-toolhub servers)", strings.Join(down, ", "))
	}
	return hint
}

// ToolMeant returns the hint for a name that no tool has: the nearest name of the surface, or otherwise.
func ToolMeant(name string, surface *tool.Surface, otherwise string) string {
	var candidates []string
	for _, l := range surface.Listed {
		candidates = append(candidates, l.Name, string(l.Tool.Name))
	}
	if hint := textfile.DidYouMean(name, candidates, ""); hint != "" {
		return hint
	}
	for _, l := range surface.Listed { // without its server
		if textfile.Nearest(name, []string{l.Tool.Native, l.Tool.Server + "." + l.Tool.Native}) != "" {
			return textfile.DidYouMean(l.Name, []string{l.Name}, otherwise)
		}
	}
	return otherwise
}

// Call calls a tool by any of its names. The error is a *tool.RPCError where that came in place of
// a result.
func (o OwnTools) Call(ctx context.Context, name string, args json.RawMessage,
	progress func(tool.Progress)) (json.RawMessage, error) {
	surface, err := o.Surface()
	if err != nil {
		return nil, err
	}
	if err := o.Hub.Permission.serve(ctx, o.Hub.Settings()); err != nil {
		return nil, err
	}
	call := invoke.Call{Surface: surface, Name: name, Params: CallParams(name, args, o.Meta), Arguments: args,
		Meta:   o.Meta,
		Method: "tools call", Actor: LocalActor(), Session: tool.Session{Key: "cli", Name: "cli", Person: tool.Local},
		Progress: progress, Ask: o.Ask}
	if o.Replays != "" {
		call.Method, call.NativeCallID = "calls replay", rawjson.Quote(string(o.Replays))
	}
	outcome := o.Hub.pipeline.Invoke(ctx, &call)
	if outcome.Err != nil {
		if _, ok := surface.Resolve(name); !ok {
			outcome.Err = &tool.RPCError{Code: outcome.Err.Code, Data: outcome.Err.Data,
				Message: fmt.Sprintf("unknown tool %q: %s", name, o.Missing(name))}
		}
		return nil, outcome.Err
	}
	return outcome.Result, nil
}

// CallParams writes the params of a tools/call. meta is nil where it has none.
func CallParams(name string, args, meta json.RawMessage) json.RawMessage {
	out := append([]byte(`{"name":`), rawjson.Quote(name)...)
	out = append(append(out, `,"arguments":`...), args...)
	if meta != nil {
		out = append(append(out, `,"_meta":`...), meta...)
	}
	return append(out, '}')
}

// factsOf returns the facts of a tool, with its lifecycle on the surface of a stranger.
func (o OwnTools) factsOf(t *tool.Tool) (*facts.Facts, error) {
	surface, err := o.Hub.Surfaces.Surface(o.Profile, Stranger())
	if err != nil {
		return nil, err
	}
	_, offered := surface.Resolve(string(t.Name))
	state := facts.State{Deferred: surface.IsDeferred(t.Name), Hidden: !offered}
	for _, st := range (Model{Hub: o.Hub}).Servers() {
		if st.Server == t.Server && st.State != tool.ServerStopped { // one that sleeps is started by a call
			state.Server = st.State
		}
	}
	f := *o.Hub.Surfaces.Now().Gate.Facts(t)
	f.Lifecycle = f.LifecycleIn(state)
	return &f, nil
}

// Find returns the tool of that name, also one that the policy hides from clients.
func (o OwnTools) Find(name string) (*tool.Listed, bool) {
	t := o.Hub.Surfaces.named(o.Profile, LocalActor().Client, name)
	if t == nil && o.Hub.HubTool(tool.Name(name)) != nil {
		t = o.Hub.Surfaces.ownTool(tool.Name(name), o.Profile, Stranger().Client)
	}
	if t == nil {
		return nil, false
	}
	return &tool.Listed{Name: string(t.Name), Tool: t, Changed: t.Declaration}, true
}

// Shown is what tools show prints of a tool; as JSON with the standard's objects of it.
func (o OwnTools) Shown(l *tool.Listed, asJSON bool) ([]byte, error) {
	f, err := o.factsOf(l.Tool)
	if err != nil {
		return nil, err
	}
	unlisted := o.withoutOutputSchema(l.Tool)
	if !asJSON {
		return ShownText(l, f, unlisted...)
	}
	surface, err := o.Hub.Surfaces.Surface(o.Profile, Stranger())
	if err != nil {
		return nil, err
	}
	record := map[string]any{"tool": l.Declaration(), "lifecycle": f.Lifecycle, "names": surface.NamesOf(l.Tool.Name)}
	if len(unlisted) > 0 {
		record["output_schema_not_listed_to"] = unlisted
	}
	for _, object := range o.Hub.Surfaces.Now().Gate.Facts(l.Tool).Objects() { // as the journal has them
		if kind := rawjson.Text(object, "object"); kind != string(tool.ObjectEvent) {
			record[kind] = object
		}
	}
	return json.MarshalIndent(record, "", "  ")
}

// withoutOutputSchema returns the known clients to which a tool is listed without its outputSchema,
// because its results may be cut.
func (o OwnTools) withoutOutputSchema(t *tool.Tool) (clients []string) {
	if t.OutputSchema == nil {
		return nil
	}
	for _, name := range append(limit.Clients(), "other clients") {
		caller := Stranger()
		caller.Client.Name = name
		surface, err := o.Hub.Surfaces.Surface(o.Profile, caller)
		if err != nil {
			continue
		}
		if r := surface.Results; r != nil && r.For(t.Name).Cuts() {
			clients = append(clients, name)
		}
	}
	return clients
}

// Described returns the description of a tool as the surface shows it: a profile may give it another one.
func Described(l tool.Listed) string {
	raw, _ := rawjson.Get(l.Declaration(), "description")
	text, _ := rawjson.String(raw)
	return text
}

// ShownText is a tool for people to read. Of one whose hub is too old to tell, the facts are nil.
// unlisted are the clients to which its outputSchema is not listed.
func ShownText(l *tool.Listed, f *facts.Facts, unlisted ...string) ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s\n", hidden.Escape(l.Name))
	for _, r := range shownRows(l, f, unlisted...) {
		fmt.Fprintf(&out, "%s: %s\n", r.Name, hidden.Escape(r.Value))
	}
	fmt.Fprintf(&out, "\n%s\n\ninput schema:\n", hidden.Escape(Described(*l)))
	var schema bytes.Buffer
	if err := json.Indent(&schema, l.Tool.InputSchema, "", "  "); err != nil {
		return nil, err
	}
	out.WriteString(hidden.Escape(schema.String()))
	return out.Bytes(), nil
}

// shownRows are what there is to say of a tool in a line each. See shownText.
func shownRows(l *tool.Listed, f *facts.Facts, unlisted ...string) (rows []console.Row) {
	add := func(name, value string) { rows = append(rows, console.Row{Name: name, Value: value}) }
	if string(l.Tool.Name) != l.Name {
		add("canonical", string(l.Tool.Name))
	}
	add("server", l.Tool.Server)
	for _, r := range l.Tool.Repairs {
		add("repaired", r.Part+": "+r.Reason)
	}
	if l.Page != "" {
		add("page", fmt.Sprintf("named as %s, because by its own URI it could be another server's", l.Page))
	}
	if len(unlisted) > 0 {
		add("output schema", fmt.Sprintf("not listed to %s, because results that are too large are cut for them",
			strings.Join(unlisted, ", ")))
	}
	if f == nil {
		return rows
	}
	add("lifecycle", fmt.Sprintf("%s (%s: %s)", f.Lifecycle.Value, f.Lifecycle.Origin, f.Lifecycle.Why))
	add("tags", strings.Join(f.Tags, " "))
	add("risk", fmt.Sprintf("%s (%s)", f.Risk.Value, f.Risk.Origin))
	add("read-only", fmt.Sprintf("%t (%s: %s)", f.ReadOnly.Value, f.ReadOnly.Origin, f.ReadOnly.Why))
	return rows
}

// ResultText writes a result for people: its texts, and a line about everything else.
func ResultText(result json.RawMessage) string {
	var b strings.Builder
	content, _ := rawjson.Get(result, "content")
	_ = rawjson.Elements(content, func(block []byte) bool {
		kind, _ := rawjson.Get(block, "type")
		name, _ := rawjson.String(kind)
		if text, ok := rawjson.Get(block, "text"); ok && name == "text" {
			s, _ := rawjson.String(text)
			b.WriteString(s + "\n")
			return true
		}
		fmt.Fprintf(&b, "[%s, %d bytes: -o json prints it]\n", name, len(block))
		return true
	})
	if structured, ok := rawjson.Get(result, "structuredContent"); ok && b.Len() == 0 {
		b.Write(structured)
	}
	return b.String()
}

// searchAnswer is the part of a search's answer that people see.
type searchAnswer struct {
	Matches []console.Match
	Pending []string                         `json:"pending_providers"`
	Down    []struct{ Server, Needs string } `json:"unavailable_providers"`
	Missing []struct {
		Name    string
		Nearest []string
	} `json:"missing_names"`
	Notes []string
	Next  struct{ Hint string } `json:"next_action"`

	Structured json.RawMessage // as it was written
}

// RefusedSearch is the text of a search whose result is an error.
type RefusedSearch string

func (r RefusedSearch) Error() string { return string(r) }

// ReadSearch reads the result of a search. Its error is a refusedSearch where that is one.
func ReadSearch(result json.RawMessage) (answer searchAnswer, err error) {
	if isError, _ := rawjson.Get(result, "isError"); string(isError) == "true" {
		return answer, RefusedSearch(hidden.Escape(strings.TrimSpace(ResultText(result))))
	}
	answer.Structured, _ = rawjson.Get(result, "structuredContent")
	if err := json.Unmarshal(answer.Structured, &answer); err != nil {
		return answer, fmt.Errorf("search: the answer cannot be read: %w", err)
	}
	return answer, nil
}

// Unknown says which names no tool has.
func (a *searchAnswer) Unknown() (all []string) {
	for _, m := range a.Missing {
		all = append(all, fmt.Sprintf("no tool is called %q; the nearest: %s", m.Name,
			hidden.Escape(strings.Join(m.Nearest, ", "))))
	}
	return all
}

// Away says which servers have not been searched.
func (a *searchAnswer) Away() (all []string) {
	if len(a.Pending) > 0 {
		all = append(all, "not answering yet: "+hidden.Escape(strings.Join(a.Pending, ", ")))
	}
	for _, d := range a.Down {
		all = append(all, hidden.Escape(d.Server)+" needs "+hidden.Escape(d.Needs))
	}
	return all
}
