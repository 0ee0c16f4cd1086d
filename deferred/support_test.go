package deferred

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// newTool is a tool of server; more are further members of its declaration.
func newTool(server, name, description, schema, more string) *tool.Tool {
	if schema == "" {
		schema = `{"type":"object","properties":{"text":{"type":"string"}}}`
	}
	if more != "" {
		more = "," + more
	}
	d := fmt.Appendf(nil, `{"name":%q,"description":%q,"inputSchema":%s%s}`, name, description, schema, more)
	return &tool.Tool{Name: tool.MCPName(server, name), Server: server, Native: name, Description: description, Declaration: d,
		InputSchema: json.RawMessage(schema), SchemaDigest: tool.Digest([]byte(schema))}
}

// surfaceOf shows tools under their canonical names, as the surface of profile. shown may give other names.
func surfaceOf(profile string, tools []*tool.Tool, shown func(*tool.Tool) string) *tool.Surface {
	var listed []tool.Listed
	names := make(map[string]int)
	var text bytes.Buffer
	servers := []string{}
	for i, t := range tools {
		name := string(t.Name)
		if shown != nil {
			name = shown(t)
		}
		d := bytes.Replace(t.Declaration, fmt.Appendf(nil, `"name":%q`, t.Native), fmt.Appendf(nil, `"name":%q`, name), 1)
		listed = append(listed, tool.Listed{Name: name, Tool: t, Changed: d})
		names[string(t.Name)], names[name] = i, i
		text.Write(d)
		if len(servers) == 0 || servers[len(servers)-1] != t.Server {
			servers = append(servers, t.Server)
		}
	}
	digest := tool.Digest(text.Bytes())
	s := tool.NewSurface(tool.SurfaceID("srf_"+digest[:26]), profile, "canonical", digest, listed, nil, names)
	s.Features = tool.NewFeatures(tool.Features{Servers: servers}, nil, func(uri string) ([]string, string) { return nil, uri })
	return s
}

// catalogsOf are the catalogs of tools, by server.
func catalogsOf(tools []*tool.Tool) []tool.Catalog {
	var out []tool.Catalog
	for _, t := range tools {
		if n := len(out); n == 0 || out[n-1].Server != t.Server {
			out = append(out, tool.Catalog{Server: t.Server, Source: tool.SourceMCP})
		}
		c := &out[len(out)-1]
		c.Tools = append(c.Tools, t)
	}
	return out
}

// shop is a handful of tools of two servers.
func shop() []*tool.Tool {
	return []*tool.Tool{
		newTool("mail", "send_message", "Sends an e-mail to somebody.",
			`{"type":"object","properties":{"to":{"type":"string"},"body":{"type":"string"}},"required":["to"]}`, ""),
		newTool("mail", "list_folders", "Lists the folders of the mailbox.", "", ""),
		newTool("shop", "search_orders", "Finds orders of customers.", "", ""),
		newTool("shop", "cancel_order", "Cancels an order.", "", ""),
		newTool("shop", "refund", "Gives money back for an order.", "", ""),
	}
}

// journal takes records.
type journal struct {
	mu  sync.Mutex
	all []tool.Record
}

func (j *journal) record(r ...tool.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all = append(j.all, r...)
}

// events are the types of the events so far, and their subjects.
func (j *journal) events() (out []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.all {
		if e, ok := r.(tool.Event); ok {
			out = append(out, string(e.EventType))
		}
	}
	return out
}

// checkSchemas holds the records against the standard, where that is at hand.
func checkSchemas(t *testing.T, records []tool.Record) {
	t.Helper()
	dir := filepath.Join("..", "..", "shared", "agenttool", "schemas")
	if _, err := os.Stat(dir); err != nil {
		t.Logf("the Agent Tool schemas are not at hand: %v", err)
		return
	}
	for _, r := range records {
		name := map[tool.Object]string{tool.ObjectSurface: "tool-surface", tool.ObjectDeferredRef: "deferred-tool",
			tool.ObjectEvent: "event"}[r.RecordObject()]
		schema, err := jsonschema.NewCompiler().Compile(filepath.Join(dir, "agenttool-"+name+".schema.json"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err == nil {
			err = schema.Validate(value)
		}
		if err != nil {
			t.Errorf("%s\n%v", text, err)
		}
	}
}

// newLoader is a loader of cfg that knows tools.
func newLoader(t testing.TB, cfg Config, o Options, tools []*tool.Tool) *Loader {
	t.Helper()
	l := New(cfg, o)
	l.Update(catalogsOf(tools))
	return l
}

func always() Config { return Config{Default: Settings{Mode: ModeAlways}} }

// session is what a session has loaded.
type session map[tool.Name]string

func (s session) Digest(name tool.Name) (string, bool) { d, ok := s[name]; return d, ok }

func (s session) Load(_ *tool.Surface, tools ...*tool.Tool) {
	for _, t := range tools {
		s[t.Name] = t.SchemaDigest
	}
}

func ann() tool.Actor { return tool.Actor{Name: "ann", Door: "http"} }

// ask runs tool_search on surface and returns its structured content and text.
func ask(t testing.TB, l *Loader, surface *tool.Surface, arguments string, loaded tool.Loaded, j *journal) (searchResult, string) {
	t.Helper()
	e := &tool.Execution{Invocation: "inv_1", Surface: surface, Actor: ann(),
		Arguments: json.RawMessage(arguments), Loaded: loaded}
	if j != nil {
		e.Record = j.record
	}
	reply, err := l.opts.HubTools[0].Execute(t.Context(), e)
	if err != nil {
		t.Fatalf("%s: %v", arguments, err)
	}
	var result struct {
		Content           []struct{ Text string }
		StructuredContent searchResult
	}
	if err := json.Unmarshal(reply.Result, &result); err != nil {
		t.Fatalf("%v in %s", err, reply.Result)
	}
	return result.StructuredContent, result.Content[0].Text
}

func namesOf(s []tool.Listed) string {
	var out []string
	for _, l := range s {
		out = append(out, l.Name)
	}
	return strings.Join(out, " ")
}

// at is a clock that stands still until it is moved.
type at struct{ time.Time }

func (a *at) now() time.Time { return a.Time }
