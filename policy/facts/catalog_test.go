package facts_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// shared is where the material lies that is no part of the project: recorded catalogs, the standard's schemas.
var shared = filepath.Join("..", "..", "..", "shared")

// recorded returns every tool of the recorded catalogs, by server.
func recorded(tb testing.TB) []*tool.Tool {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(shared, "catalog", "*.json"))
	if err != nil {
		tb.Fatal(err)
	}
	if len(files) == 0 {
		tb.Skip("the recorded catalogs are not beside the project: nothing to hold the facts against")
	}
	var tools []*tool.Tool
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		var recording struct {
			Name string
			List []struct{ Tools []json.RawMessage } `json:"tools/list"`
		}
		if err := json.Unmarshal(text, &recording); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		for _, page := range recording.List {
			for _, declaration := range page.Tools {
				tools = append(tools, declared(tb, recording.Name, string(declaration)))
			}
		}
	}
	return tools
}

// declared returns the tool of server that a declaration is of.
func declared(tb testing.TB, server, declaration string) *tool.Tool {
	tb.Helper()
	var d struct {
		Name, Title, Description  string
		InputSchema, OutputSchema json.RawMessage
	}
	if err := json.Unmarshal([]byte(declaration), &d); err != nil {
		tb.Fatalf("%s: %v", declaration, err)
	}
	return &tool.Tool{Name: tool.MCPName(server, d.Name), Server: server, Native: d.Name,
		Declaration: json.RawMessage(declaration), InputSchema: d.InputSchema, OutputSchema: d.OutputSchema,
		SchemaDigest: tool.Digest(d.InputSchema), Title: d.Title, Description: d.Description}
}

// label is what a person says of a tool.
type label struct {
	effect    string // readonly, write or destructive
	openWorld bool
}

func labels(tb testing.TB) map[tool.Name]label {
	tb.Helper()
	f, err := os.Open(filepath.Join("testdata", "catalog.golden"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	out := make(map[tool.Name]label)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) < 3 || len(words) > 4 || len(words) == 4 && words[3] != "openworld" ||
			words[2] != "readonly" && words[2] != "write" && words[2] != "destructive" {
			tb.Fatalf("catalog.golden: %q is no label", lines.Text())
		}
		out[tool.MCPName(words[0], words[1])] = label{words[2], len(words) == 4}
	}
	return out
}

// TestCatalog holds the facts of the recorded tools against what a person says of them: with the annotations taken away,
// with those of a server without trust, which only tighten, and with those of a trusted one.
func TestCatalog(t *testing.T) {
	t.Parallel()
	tools, known := recorded(t), labels(t)
	if len(tools) != len(known) {
		t.Errorf("%d tools are recorded and %d labelled", len(tools), len(known))
	}
	for _, way := range []string{"bare", "untrusted", "trusted"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			readers, recognised := 0, 0
			for _, tl := range tools {
				want, ok := known[tl.Name]
				if !ok {
					t.Errorf("%s is not labelled", tl.Name)
					continue
				}
				if way == "bare" {
					tl = bare(t, tl)
				}
				f := facts.Of(tl, facts.Options{Trust: way == "trusted"})
				if want.effect == "readonly" {
					readers++
					if f.ReadOnly.Value || f.LooksReadOnly() {
						recognised++
					}
				} else if f.LooksReadOnly() {
					t.Logf("looks as if it only read: %s", tl.Name)
				}
				holdAgainst(t, f, want, way == "trusted")
			}
			t.Logf("of %d tools that only read, %d are read-only or look so", readers, recognised)
			if way != "bare" && 10*recognised < 7*readers {
				t.Error("too few of the tools that only read are offered")
			}
		})
	}
}

// bare returns the tool without its annotations.
func bare(t *testing.T, tl *tool.Tool) *tool.Tool {
	t.Helper()
	declaration, _, err := rawjson.Delete(tl.Declaration, "annotations")
	if err != nil {
		t.Fatal(err)
	}
	out := *tl
	out.Declaration = declaration
	return &out
}

func holdAgainst(t *testing.T, f *facts.Facts, want label, trusted bool) {
	t.Helper()
	if f.ReadOnly.Value && f.Destructive.Value {
		t.Errorf("%s is read-only and destructive", f.Tool)
	}
	if f.ReadOnly.Value && want.effect == "destructive" {
		t.Errorf("%s is destructive and taken for read-only: %s, %s", f.Tool, f.ReadOnly.Origin, f.ReadOnly.Why)
	}
	if trusted {
		return // the operator believes what else a server says
	}
	if f.ReadOnly.Value {
		t.Errorf("%s is taken for read-only because of a server's own words: %s, %s", f.Tool, f.ReadOnly.Origin, f.ReadOnly.Why)
	}
	if !f.Destructive.Value && want.effect == "destructive" {
		t.Errorf("%s is destructive and taken for harmless: %s", f.Tool, f.Destructive.Why)
	}
	if !f.OpenWorld.Value && want.openWorld {
		t.Errorf("%s is of the open world and taken for bounded: %s", f.Tool, f.OpenWorld.Why)
	}
}

func TestMain(m *testing.M) {
	if _, err := os.Stat(shared); errors.Is(err, fs.ErrNotExist) {
		shared = filepath.Join("..", "..", "shared")
	}
	os.Exit(m.Run())
}
