package deferred

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

var update = flag.Bool("update", false, "write testdata/session.golden instead of comparing with it")

// recordedServers returns the tools of the recorded servers, or skips the test where they are not at hand.
func recordedServers(t *testing.T) (tools []*tool.Tool) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join("..", "..", "shared", "catalog", "*.json"))
	if len(files) == 0 {
		t.Skip("no recorded catalogs in ../shared/catalog beside the repository")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		var r struct {
			Pages []struct{ Tools []json.RawMessage } `json:"tools/list"`
		}
		if err != nil || json.Unmarshal(text, &r) != nil {
			t.Fatalf("%s: %v", file, err)
		}
		server := strings.TrimSuffix(filepath.Base(file), ".json")
		for _, page := range r.Pages {
			for _, d := range page.Tools {
				name, schema := rawjson.Text(d, "name"), rawjson.GetObject(d, "inputSchema")
				tools = append(tools, &tool.Tool{Name: tool.MCPName(server, name), Server: server, Native: name, Title: rawjson.Text(d, "title"),
					Description: rawjson.Text(d, "description"), Declaration: d, InputSchema: schema, SchemaDigest: tool.Digest(schema)})
			}
		}
	}
	return tools
}

// TestTokensOfASession: what a model reads in a session of three searches and five calls on the recorded servers. It reads
// the list and all answers so far at each of its nine turns. With five declarations an answer it was 40,545 tokens, and more
// where the list grew. -update writes the figures anew.
func TestTokensOfASession(t *testing.T) {
	t.Parallel()
	tools := recordedServers(t)
	l := newLoader(t, Config{}, Options{Keys: [][]byte{{0}}, Now: func() time.Time { return time.Unix(0, 0) }}, tools)
	s := l.Surface(surfaceOf("p", tools, nil), tool.Client{Name: "my-agent"})
	list := 0
	for _, one := range s.Listed {
		list += Tokens(one.Declaration())
	}
	got := fmt.Sprintf("%d tools, the list: %d tokens\n", len(tools), list)
	said, total := 0, list // at the first turn
	for _, turn := range []struct {
		query string
		calls int
	}{{"create an issue on GitHub", 1}, {"take a screenshot of a web page", 2}, {"send a message to a Slack channel", 2}, {"Book a hotel room", 0}} {
		_, text := ask(t, l, s, `{"query":"`+turn.query+`"}`, session{}, nil)
		cost := 15 * tokensOf([]byte(text)) / 16
		got += fmt.Sprintf("%s: %d tokens\n", turn.query, cost)
		if turn.calls == 0 {
			continue
		}
		said += cost
		total += (1 + turn.calls) * (list + said)
	}
	got += fmt.Sprintf("the session: %d tokens\n", total)
	file := filepath.Join("testdata", "session.golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != got {
		t.Errorf("%s is not what is measured (%v):\n%s", file, err, got)
	}
}
