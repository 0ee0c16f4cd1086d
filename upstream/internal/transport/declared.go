package transport

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// Declared holds the capabilities of a server as it wrote them in its answer to initialize or
// server/discover. The SDK decodes only the members that it knows.
type Declared struct {
	mu       sync.Mutex
	raw      []byte
	answered bool // there was a result
	notUTF8  int  // of the last one; see jsonrpc.Message
}

// Note reads the capabilities from a response to a request of the SDK. The last response that has some counts.
func (d *Declared) Note(e jsonrpc.Message) {
	if !rawjson.IsObject(e.Result) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answered, d.notUTF8 = true, e.NotUTF8
	if raw, ok := rawjson.Get(e.Result, "capabilities"); ok && e.NotUTF8 == 0 && rawjson.IsObject(raw) &&
		rawjson.Valid(raw) {
		d.raw = bytes.Clone(raw)
	}
}

// IsAnswered reports whether the server has answered a request of the SDK with a result.
func (d *Declared) IsAnswered() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.answered
}

// Fault returns why the answer cannot be used although the SDK has decoded it, or nil.
func (d *Declared) Fault() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.notUTF8 == 0 {
		return nil
	}
	return fmt.Errorf("it is not UTF-8 (byte %d of it)", d.notUTF8-1)
}

// All returns the capabilities, or nil.
func (d *Declared) All() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.raw
}

// maxHello bounds what is kept of a response over HTTP until its capabilities are found.
const maxHello = 1 << 20

// overheard is the body of a response that the SDK reads. It notes the capabilities in it.
type overheard struct {
	io.ReadCloser
	stream bool // of server-sent events
	to     *Declared
	text   []byte
	done   bool
}

// overhear returns the body of resp, which notes in to what the SDK reads.
func overhear(resp *http.Response, to *Declared) io.ReadCloser {
	return &overheard{ReadCloser: resp.Body, stream: IsEventStream(resp), to: to}
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

// look notes the capabilities in the text so far.
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
		o.to.Note(e)
	}
}
