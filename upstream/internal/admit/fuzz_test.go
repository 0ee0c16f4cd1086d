package admit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

func FuzzAdmit(f *testing.F) {
	for _, seed := range []string{
		`{"name":"t","inputSchema":{"type":"object"}}`,
		`{"name":"t","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}},"outputSchema":{"$ref":"#/$defs/a"}}`,
		`{"name":"t","inputSchema":{"type":["object","null"]},"annotations":{"title":1,"readOnlyHint":"x"},"icons":[{"src":"a","sizes":[1]}]}`,
		`{"name":"t","name":"u","_meta":[],"execution":{"taskSupport":"required"}}`,
		"{\r\n\"name\":\"\\ud800\\n\xff\", \"title\":null }",
		`{"type":"object","properties":{"p":{"pattern":"(?=a)","type":"integer","minimum":1e400}}}`,
		`[{"name":"t"},"t"]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		watchdog := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("hangs: admit(%q)", data)) })
		defer watchdog.Stop()
		list := []json.RawMessage{data, // a tool; an input schema; an output schema and its neighbours
			[]byte(`{"name":"in","inputSchema":` + string(data) + `}`),
			[]byte(`{"name":"out","outputSchema":` + string(data) + `,"annotations":` + string(data) + `}`),
			[]byte(`{"name":"more","icons":[` + string(data) + `],"_meta":` + string(data) + `,"execution":` + string(data) + `}`)}
		before := bytes.Clone(data)
		tools, excluded := admit(settings.Server{ID: "srv"}, list)
		if len(tools)+len(excluded) != len(list) {
			t.Fatalf("%d tools and %d exclusions of %d", len(tools), len(excluded), len(list))
		}
		if !bytes.Equal(before, data) {
			t.Fatal("the input was changed")
		}
		for _, admitted := range tools {
			register(t, admitted)
			again, _ := admit(settings.Server{ID: "srv"}, []json.RawMessage{admitted.Declaration})
			if len(again) != 1 || again[0].Repairs != nil || !bytes.Equal(again[0].Declaration, admitted.Declaration) {
				t.Fatalf("not admitted as it stands after its repair: %s", admitted.Declaration)
			}
		}
		for _, e := range excluded {
			if e.Tool == "" || e.Code == "" || e.Reason == "" || strings.ContainsAny(e.Tool, "\x1b\n") {
				t.Fatalf("exclusion %+v", e)
			}
		}
	})
}

func BenchmarkAdmit(b *testing.B) {
	catalogs := realCatalogs(b)
	b.ReportAllocs()
	for b.Loop() {
		admit(settings.Server{ID: "github"}, catalogs["github"])
	}
}
