package upstream

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// declared are the capabilities of a server as it wrote them in its answer to initialize or server/discover. The SDK knows
// only some of their members, and decodes these.
type declared struct {
	mu       sync.Mutex
	raw      []byte
	answered bool // there was a result
	notUTF8  int  // of the last one; see jsonrpc.Message
}

// note takes what a response to a request of the SDK says, where it says anything: the last one counts.
func (d *declared) note(e jsonrpc.Message) {
	if !rawjson.IsObject(e.Result) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answered, d.notUTF8 = true, e.NotUTF8
	if raw, ok := rawjson.Get(e.Result, "capabilities"); ok && e.NotUTF8 == 0 && rawjson.IsObject(raw) && rawjson.Valid(raw) {
		d.raw = bytes.Clone(raw)
	}
}

// isAnswered reports whether the server has answered a request of the SDK with a result.
func (d *declared) isAnswered() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.answered
}

// fault is why what the server answered cannot be used, although the SDK has decoded it; nil where it can.
func (d *declared) fault() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.notUTF8 == 0 {
		return nil
	}
	return fmt.Errorf("it is not UTF-8 (byte %d of it)", d.notUTF8-1)
}

func (d *declared) all() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.raw
}

// maxHello bounds what is kept of a response over HTTP until it is known whether capabilities stand in it.
const maxHello = 1 << 20

// overheard is the body of a response to the SDK, which reads it; the capabilities in it are noted.
type overheard struct {
	io.ReadCloser
	stream bool // of server-sent events
	to     *declared
	text   []byte
	done   bool
}

// overhear lets to note what the SDK reads of resp.
func overhear(resp *http.Response, to *declared) io.ReadCloser {
	return &overheard{ReadCloser: resp.Body, stream: isEventStream(resp), to: to}
}

func (o *overheard) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if o.done {
		return n, err
	}
	if len(o.text)+n > maxHello {
		o.done, o.text = true, nil
		return n, err
	}
	o.text = append(o.text, p[:n]...)
	// Before the SDK goes on: what it has read of an event is noted with the event's end.
	if err != nil || o.stream && bytes.Contains(o.text[max(len(o.text)-n-3, 0):], []byte("\n")) {
		o.look()
		o.done = err != nil
	}
	return n, err
}

// look notes what the text so far says.
func (o *overheard) look() {
	message := o.text
	if o.stream {
		events := jsonrpc.NewEventReader(io.NopCloser(bytes.NewReader(o.text)), maxHello, nil)
		for {
			ev, err := events.Next()
			if err != nil {
				return
			}
			o.noteResponse(ev.Data)
		}
	}
	o.noteResponse(message)
}

func (o *overheard) noteResponse(message []byte) {
	if e := jsonrpc.Read(message); e.Kind == jsonrpc.Response && (e.Valid || e.NotUTF8 > 0) {
		o.to.note(e)
	}
}

// maxDeclared is the size in bytes above which a member of a server's capabilities is not passed on.
const maxDeclared = 64 << 10

// declares returns a member of the capabilities, as one line; "" where there is none that is an object.
func (s *session) declares(name string) string {
	raw, ok := ability(s.declared, name)
	if !ok || len(raw) > maxDeclared {
		return ""
	}
	line, err := rawjson.Line(raw)
	if err != nil {
		return ""
	}
	return string(line)
}

// tasks is what the server says that it can do with tasks, each by the rules of its own revision.
func (s *session) tasks() (tasks tool.Tasks, extension bool) {
	if s.hop != nil {
		extensions, _ := ability(s.declared, "extensions")
		_, extension = ability(extensions, tool.TaskExtension)
		return tasks, extension
	}
	all, ok := ability(s.declared, "tasks")
	if !ok || s.version != newestWithSession {
		return tasks, false
	}
	_, tasks.List = ability(all, "list")
	_, tasks.Cancel = ability(all, "cancel")
	requests, _ := ability(all, "requests")
	tools, _ := ability(requests, "tools")
	_, tasks.Calls = ability(tools, "call")
	return tasks, false
}
