package downstream

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"sync"

	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// sdkConn gives the SDK those messages of a client on stdio that it serves, and writes its answers. It implements
// mcp.Connection.
type sdkConn struct {
	out      *lineWriter
	messages chan sdkrpc.Message // for the SDK
	closed   chan struct{}
	once     sync.Once
	answered func(id string, r *sdkrpc.Response) (written func()) // is told of each answer before it is written

	mu      sync.Mutex
	open    map[string]sdkRequest // by the id that the SDK sees
	leaving int                   // answers that are not in open any more, and not written yet
	done    chan struct{}         // closed when nothing is owed after the input ended; nil before that
}

// sdkRequest is a request that the SDK has to answer.
type sdkRequest struct {
	mask  *idMask
	reply func(pieces) (written bool)
}

func newSDKConn(out *lineWriter, answered func(string, *sdkrpc.Response) func()) *sdkConn {
	return &sdkConn{out: out, answered: answered, messages: make(chan sdkrpc.Message), closed: make(chan struct{}),
		open: make(map[string]sdkRequest)}
}

// sdkTransport hands the SDK its connection.
type sdkTransport struct{ conn *sdkConn }

func (t sdkTransport) Connect(context.Context) (mcp.Connection, error) { return t.conn, nil }

// begin notes a request for the SDK. It returns false where the client has an open request of that id.
func (c *sdkConn) begin(r sdkRequest) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, open := range c.open {
		if bytes.Equal(open.mask.original, r.mask.original) {
			return false
		}
	}
	c.open[string(r.mask.stand)] = r
	return true
}

// Read implements mcp.Connection.
func (c *sdkConn) Read(ctx context.Context) (sdkrpc.Message, error) {
	select {
	case m := <-c.messages:
		return m, nil
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements mcp.Connection. The client may use the id of a request again once it has the
// answer, so the id is free before that is written.
func (c *sdkConn) Write(_ context.Context, msg sdkrpc.Message) error {
	text, err := sdkrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("write to client: %w", err)
	}
	r, ok := msg.(*sdkrpc.Response)
	if !ok {
		return c.out.line(text)
	}
	name, _ := r.ID.Raw().(string)
	id := string(rawjson.Quote(name))
	c.mu.Lock()
	request, known := c.open[id]
	delete(c.open, id)
	c.leaving++
	c.mu.Unlock()
	defer c.left()
	defer c.answered(id, r)()
	if !known {
		return c.out.line(text)
	}
	request.reply(whole(request.mask.undo(text)))
	return nil
}

// left notes that an answer has been written.
func (c *sdkConn) left() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving--
	c.lookIdle()
}

// idle returns a channel that is closed when the SDK owes the client nothing more. It is called
// once, after the last message.
func (c *sdkConn) idle() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	done := make(chan struct{})
	c.done = done
	c.lookIdle()
	return done
}

// lookIdle closes done when nothing is owed. c.mu is held.
func (c *sdkConn) lookIdle() {
	if len(c.open) == 0 && c.leaving == 0 && c.done != nil {
		close(c.done)
		c.done = nil
	}
}

func (c *sdkConn) close() { c.once.Do(func() { close(c.closed) }) }

// Close implements mcp.Connection.
func (c *sdkConn) Close() error {
	c.close()
	return nil
}

// SessionID implements mcp.Connection: stdio has no session ids.
func (c *sdkConn) SessionID() string { return "" }

// maskCancelled gives a notifications/cancelled the id under which the SDK knows the request.
func (c *sdkConn) maskCancelled(m *jsonrpc.Message) {
	id, ok := rawjson.Get(m.Params, "requestId")
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.open {
		if bytes.Equal(r.mask.original, id) {
			if params, err := rawjson.Set(m.Params, "requestId", r.mask.stand); err == nil {
				if text, err := rawjson.Set(m.Text, "params", params); err == nil {
					m.Params, m.Text = params, text
				}
			}
		}
	}
}

// idMask stands in for the id of a request to the SDK, which would not give every id back as it
// came: it reads numbers as 64-bit integers, so 1.5, 1e3 or 20 digits would change, and it writes
// strings with its own escapes. The SDK sees a plain string, and what it writes gets the original
// back.
type idMask struct {
	stand, original []byte
}

// maskID returns a request with an id that survives the SDK, and the mask to undo it. Other messages have no mask.
func maskID(m *jsonrpc.Message) (*jsonrpc.Message, *idMask) {
	if !m.IsRequest() {
		return m, nil
	}
	mask := &idMask{stand: rawjson.Quote("toolhub-id-" + rand.Text()), original: m.ID}
	text, err := rawjson.Set(m.Text, "id", mask.stand)
	if err != nil {
		return m, nil
	}
	masked := *m
	masked.Text, masked.ID = text, mask.stand
	return &masked, mask
}

// undo puts the original id back into a text that the SDK wrote. The stand-in is random, so nothing else can hold it.
func (k *idMask) undo(text []byte) []byte {
	if k == nil {
		return text
	}
	return bytes.ReplaceAll(text, k.stand, k.original)
}
