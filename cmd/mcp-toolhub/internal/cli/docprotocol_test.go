package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestProtocolPage checks the two conversations in docs/protocol.md against a hub: each line that the hub says there is
// what it says. -update writes them anew.
func TestProtocolPage(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "..", "..", "docs", "protocol.md")
	page := readFile(t, file)
	want := page
	for _, version := range []string{rev2025, rev2026} {
		begin, end := "<!-- conversation "+version+" -->\n", "<!-- end -->"
		before, rest, found := strings.Cut(want, begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("docs/protocol.md has no place for the conversation on %s", version)
		}
		want = before + begin + "\n```http\n" + conversation(t, version) + "```\n\n" + end + after
	}
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, now := strings.Split(page, "\n"), strings.Split(want, "\n")
	for i := range min(len(got), len(now)) {
		if got[i] != now[i] {
			t.Fatalf("docs/protocol.md:%d says\n%s\nand the hub\n%s\nrun go test ./cmd/mcp-toolhub/internal/cli -run TestProtocolPage -update", i+1, got[i], now[i])
		}
	}
	if len(got) != len(now) {
		t.Error("docs/protocol.md ends early or late: run go test ./cmd/mcp-toolhub/internal/cli -run TestProtocolPage -update")
	}
}

// conversation is what a client and a hub say to each other on a revision of the protocol: the client lists, searches and
// calls a tool that a person is asked about.
func conversation(t *testing.T, version string) string {
	t.Helper()
	hub := startHub(t, "hub.json", configText(t, map[string]any{"demo": map[string]any{"command": "mcp-toolhub",
		"args": []string{"demo-server"}, "env": map[string]any{"GORACE": os.Getenv("GORACE")}}},
		map[string]any{"policy": nil, "deferred": map[string]any{"mode": "always"}}))
	w := wireHTTP(t, hub.url+"/mcp", version)
	w.can = `{"elicitation":{}}`
	eventually(t, "the demo server is listed", func() bool { return hub.server(t, "demo").Tools > 0 })
	c := &clerk{t: t, w: w}
	if !w.modern() {
		r := w.initialize("editor")
		c.request(r.text(), r)
		status, h, messages := w.post(r)
		w.session = h.Get("Mcp-Session-Id")
		c.response(status, h, messages)
		c.request(initialized.text(), initialized)
		status, h, messages = w.post(initialized)
		c.response(status, h, messages)
	}
	c.do(rawRequest{id: w.nextID(), method: "tools/list", params: w.params("", "")})
	search := rawRequest{id: w.nextID(), method: "tools/call", name: "tool_search",
		params: w.params(`"name":"tool_search","arguments":{"query":"select:grow"}`, "")}
	found := foundBy(t, w.resultOf(c.do(search)))
	if len(found.Matches) != 1 {
		t.Fatalf("%d tools were found", len(found.Matches))
	}
	x := &exchange{w: w, ids: 10, answer: func(int, asked) string { return `{"action":"accept","content":{"answer":"allow_once"}}` }}
	x.call("tool_call", `{"name":"mcp.demo.grow","arguments":{},"selection_ref":`+quoted(found.Matches[0].Ref)+`}`)
	for _, line := range x.lines {
		c.line(line)
	}
	return c.normal()
}

// clerk writes a conversation down.
type clerk struct {
	t    *testing.T
	w    *wire
	text strings.Builder
}

// do sends r, writes down what goes over the wire and returns the response.
func (c *clerk) do(r rawRequest) string {
	c.t.Helper()
	c.request(r.text(), r)
	status, h, messages := c.w.post(r)
	c.response(status, h, messages)
	return messages[len(messages)-1]
}

func (c *clerk) request(text string, r rawRequest) {
	req := c.w.newRequest(r)
	c.text.WriteString("> POST /mcp\n")
	for _, name := range []string{"Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name"} {
		if v := req.Header.Get(name); v != "" {
			fmt.Fprintf(&c.text, "> %s: %s\n", name, v)
		}
	}
	c.message(text)
}

func (c *clerk) response(status int, h http.Header, messages []string) {
	fmt.Fprintf(&c.text, "< %d %s\n", status, http.StatusText(status))
	for _, name := range []string{"Content-Type", "Mcp-Session-Id"} {
		if v := h.Get(name); v != "" {
			fmt.Fprintf(&c.text, "< %s: %s\n", name, v)
		}
	}
	for _, m := range messages {
		c.message(m)
	}
	if len(messages) == 0 {
		c.text.WriteString("\n")
	}
}

// line writes down one line of an exchange.
func (c *clerk) line(line string) {
	sign, text, _ := strings.Cut(line, " ")
	if sign == "<" {
		c.text.WriteString("<\n")
		c.message(text)
		return
	}
	r := rawRequest{params: "{}"}
	var head struct {
		Method string
		Params struct{ Name string }
	}
	mustDecode(c.t, text, &head)
	r.method, r.name = head.Method, head.Params.Name
	c.request(text, r)
}

// message writes a message in lines that fit.
func (c *clerk) message(text string) {
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), "", "  "); err != nil {
		c.t.Fatal(err)
	}
	short := regexp.MustCompile(`([\[{])\n\s+([^\[\]{}\n]*(?:\n\s+[^\[\]{}\n]*)*)\n\s+([\]}])`)
	indented := b.String()
	for range 3 { // an object whose objects fit on a line may fit on one itself
		indented = short.ReplaceAllStringFunc(indented, func(nested string) string {
			line := regexp.MustCompile(`\n\s+`).ReplaceAllString(nested, " ")
			line = line[:1] + strings.TrimSpace(line[1:len(line)-1]) + line[len(line)-1:]
			if len(line) > 100 {
				return nested
			}
			return line
		})
		short = regexp.MustCompile(`([\[{])\n\s+((?:[^\[\]{}\n]|\{[^{}\n]*\}|\[[^\[\]\n]*\])*(?:\n\s+(?:[^\[\]{}\n]|\{[^{}\n]*\}|\[[^\[\]\n]*\])*)*)\n\s+([\]}])`)
	}
	c.text.WriteString(indented + "\n\n")
}

// normal is the conversation with everything that is another one each time replaced.
func (c *clerk) normal() string {
	text := c.text.String()
	for _, r := range []struct{ find, replace string }{
		{`inv_[0-9a-z]{26}`, "inv_…"}, {`apr_[0-9a-z]{26}`, "apr_…"}, {`("selection_ref": ")[^"]*`, "${1}…"},
		{`"toolhub-[0-9A-Z]+"`, `"toolhub-1"`}, {`(selection_ref: )[\w-]+`, "${1}…"}, {`("requestState": ")[^"]*`, "${1}…"}, {`(Runs in: )[^"\\]*`, "${1}/home/ann/project"}, {`(Mcp-Session-Id: ).*`, "${1}…"}, {`("ttlMs": )\d+`, "${1}0"},
		{`("toolhub/invocation": \{\s*"invocation_id": ")[^"]*`, "${1}inv_…"}, {`("version": ")devel[^"]*`, "${1}1.0.0"},
	} {
		text = regexp.MustCompile(r.find).ReplaceAllString(text, r.replace)
	}
	return text
}
