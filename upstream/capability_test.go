package upstream_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestCapabilitiesOffered checks what servers are told that the client behind them can do.
func TestCapabilitiesOffered(t *testing.T) {
	t.Parallel()
	const all = `{"roots":{},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}`
	const client = `{"tasks":{"list":{}},"experimental":{"x":{}},"elicitation":{"form":{"y":1}},"roots":{"listChanged":true},` +
		`"extensions":{"io.modelcontextprotocol/ui":{"n":12345678901234567890},"odd":1},"sampling":{"context":{}}}`
	const ofClient = `{"extensions":{"io.modelcontextprotocol/ui":{"n":12345678901234567890}},"sampling":{"context":{}},` +
		`"elicitation":{"form":{}},"roots":{"listChanged":true}}`
	for name, c := range map[string]struct {
		way      way
		isolated bool
		never    bool // isolated
		says     string
		want     []string // in the order of the connections
	}{
		"http shared":           {way: way{http: &upstreamtest.Options{}}, says: client, want: []string{all}},
		"stdio":                 {way: way{}, says: client, want: []string{all}},
		"stdio shared":          {way: way{}, never: true, says: client, want: []string{`{}`}},
		"sse shared":            {way: way{http: &upstreamtest.Options{SSE: true}}, never: true, says: client, want: []string{`{}`}},
		"http isolated":         {way: way{http: &upstreamtest.Options{}}, isolated: true, says: client, want: []string{all, ofClient}},
		"stdio isolated":        {way: way{}, isolated: true, says: client, want: []string{all, ofClient}},
		"isolated, says little": {way: way{http: &upstreamtest.Options{}}, isolated: true, says: `{"sampling":null,"roots":true}`, want: []string{all, `{}`}},
		"isolated, says rot":    {way: way{http: &upstreamtest.Options{}}, isolated: true, says: `{"sampling":{},`, want: []string{all, `{}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := withAsking(c.way.script)
			record := filepath.Join(t.TempDir(), "received")
			var cfg upstream.ServerConfig
			var far *upstreamtest.Handler
			if c.way.http == nil {
				script.Record = record
				cfg = stdio("s", script)
			} else {
				o := *c.way.http
				o.Script = script
				cfg, far = overHTTP(t, "s", o)
			}
			cfg.Isolated, cfg.Shared = c.isolated, c.never
			h := start(t, cfg)
			if err := h.WaitReady(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := (caller{name: "ann", says: c.says}).call(t.Context(), h, "echo", `{}`); err != nil {
				t.Fatal(err)
			}
			var lines []string
			if far == nil {
				data, err := os.ReadFile(record)
				if err != nil {
					t.Fatal(err)
				}
				lines = strings.Split(string(data), "\n")
			} else {
				for _, r := range far.Requests() {
					lines = append(lines, string(r.Body))
				}
			}
			var got []string
			for _, line := range lines {
				if method, _ := rawjson.Get([]byte(line), "method"); string(method) == `"initialize"` {
					params, _ := rawjson.Get([]byte(line), "params")
					offered, _ := rawjson.Get(params, "capabilities")
					got = append(got, string(offered))
				}
			}
			if len(got) != len(c.want) {
				t.Fatalf("offered %q", got)
			}
			for i := range got {
				if !sameJSON(t, got[i], c.want[i]) {
					t.Errorf("connection %d offers %s, want %s", i, got[i], c.want[i])
				}
			}
		})
	}
}

func sameJSON(t testing.TB, a, b string) bool {
	t.Helper()
	var canonical [2]string
	for i, text := range []string{a, b} {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		out, _ := json.Marshal(v)
		canonical[i] = string(out)
	}
	return canonical[0] == canonical[1]
}
