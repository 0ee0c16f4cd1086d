//go:build e2e

package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

type echoInput struct {
	Text  string `json:"text" jsonschema:"what to say"`
	Times int    `json:"times,omitempty" jsonschema:"how often"`
}

type echoOutput struct {
	Text   string `json:"text"`
	Length int    `json:"length"`
}

// serveEcho is an ordinary server on the bare SDK with one typed tool. It speaks one generation of the protocol, so that all
// ways to it speak the same.
func serveEcho(ctx context.Context, spec benchSpec) error {
	versions := []string{rev2025, rev2025June}
	if spec.Modern {
		versions = []string{rev2026}
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1"}, &mcp.ServerOptions{SupportedProtocolVersions: versions})
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Says what it is told."},
		func(_ context.Context, _ *mcp.CallToolRequest, in echoInput) (*mcp.CallToolResult, echoOutput, error) {
			said := strings.Repeat(in.Text, max(1, in.Times))
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}},
				echoOutput{Text: said, Length: utf8.RuneCountInString(said)}, nil
		})
	if spec.Door == "http" {
		return serveBenchHTTP(sdkHandler(s, spec.Modern))
	}
	return s.Run(ctx, &mcp.StdioTransport{})
}

// rawServer answers from texts made beforehand, so that a benchmark of large results or catalogs measures what lies in
// front of it.
type rawServer struct {
	list  []byte            // the answer's member "result", as all texts here
	blobs map[string][]byte // by tool name; complete before the first request
}

// blobSizes are the sizes of the large results, in MiB, by the tool that gives them.
var blobSizes = []struct {
	tool string
	mib  int
}{{"blob_1mib", 1}, {"blob_10mib", 10}}

// newRawServer returns the server of spec, which lists the blobs first.
func newRawServer(spec benchSpec) *rawServer {
	s := &rawServer{blobs: make(map[string][]byte)}
	var names []string
	for _, b := range blobSizes {
		names = append(names, b.tool)
	}
	for i := len(names); i < spec.Tools; i++ {
		names = append(names, fmt.Sprintf("tool_%05d", i))
	}
	list := []byte(`"result":{"tools":[`)
	for i, name := range names {
		if i > 0 {
			list = append(list, ',')
		}
		list = fmt.Appendf(list, rawDeclaration, name, spec.First+i, spec.First+i, spec.First+i)
	}
	s.list = append(list, "]}"...)
	const line = `func lookup(name string) (*entry, error) {\n\treturn find(\"entries\", name) // größer\n`
	for _, b := range blobSizes { // text with escapes in it, as the contents of files have
		text := strings.Repeat(line, b.mib<<20/len(line))
		s.blobs[b.tool] = []byte(`"result":{"content":[{"type":"text","text":"` + text + `"}]}`)
	}
	return s
}

// rawDeclaration is a tool of usual size, with a schema of its own.
const rawDeclaration = `{"name":%q,"title":"Query records","description":"Finds the records of collection %d that match a filter, ` +
	`newest first. Use it before update_record, because updates need the revision that it returns.","inputSchema":{"type":"object",` +
	`"properties":{"collection_%d":{"type":"string","minLength":1,"description":"Where to look."},"filter":{"type":"object",` +
	`"description":"Field names and the values that they must have.","additionalProperties":{"type":["string","number","boolean"]}},` +
	`"limit":{"type":"integer","minimum":1,"maximum":100,"default":20},"order":{"enum":["asc","desc"]}},` +
	`"required":["collection_%d"],"additionalProperties":false},"annotations":{"readOnlyHint":true}}`

// rawArguments are arguments that the n-th tool takes.
func rawArguments(n int) string { return fmt.Sprintf(`{"collection_%d":"orders"}`, n) }

const rawInitialized = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`

// answer returns the id of the request in message and its answer's last member. id is nil for a notification.
func (s *rawServer) answer(message []byte) (id, member []byte) {
	id, _ = rawjson.Get(message, "id")
	raw, _ := rawjson.Get(message, "method")
	switch method, _ := rawjson.String(raw); method {
	case "initialize":
		if bytes.Contains(message, []byte(rev2025June)) {
			return id, bytes.Replace([]byte(rawInitialized), []byte(rev2025), []byte(rev2025June), 1)
		}
		return id, []byte(rawInitialized)
	case "ping":
		return id, []byte(`"result":{}`)
	case "tools/list":
		return id, s.list
	case "tools/call":
		params, _ := rawjson.Get(message, "params")
		raw, _ := rawjson.Get(params, "name")
		name, _ := rawjson.String(raw)
		if blob, ok := s.blobs[name]; ok {
			return id, blob
		}
		return id, []byte(`"result":{"content":[{"type":"text","text":"done"}]}`)
	}
	return id, []byte(`"error":{"code":-32601,"message":"method not found"}`)
}

func (s *rawServer) serve(door string) error {
	if door == "http" {
		return serveBenchHTTP(s)
	}
	in := bufio.NewReaderSize(os.Stdin, 64<<10)
	out := bufio.NewWriterSize(os.Stdout, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if id, member := s.answer(line); id != nil {
			writeAnswer(out, id, member)
			_ = out.WriteByte('\n')
			if err := out.Flush(); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

const answerFrame = len(`{"jsonrpc":"2.0","id":,}`)

func writeAnswer(w io.Writer, id, member []byte) {
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,`, id) // a reader that is gone is noticed when flushing
	_, _ = w.Write(member)
	_, _ = io.WriteString(w, "}")
}

// ServeHTTP serves the server over Streamable HTTP, in plain JSON.
func (s *rawServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "no standing stream", http.StatusMethodNotAllowed)
		return
	}
	var body bytes.Buffer
	if _, err := body.ReadFrom(r.Body); err != nil {
		return
	}
	id, member := s.answer(body.Bytes())
	if id == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Mcp-Session-Id", "raw")
	w.Header().Set("Content-Length", strconv.Itoa(answerFrame+len(id)+len(member)))
	writeAnswer(w, id, member)
}
