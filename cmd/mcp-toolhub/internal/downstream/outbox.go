package downstream

import (
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/queue"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// note is a notification that waits for a client.
type note struct {
	key    string // while one of a key waits, another one of it says nothing new; "" where each counts
	method string
	level  int // of a server's log message during a call
	params json.RawMessage
}

// Size implements queue.Item.
func (n note) Size() int { return len(n.params) }

// Key implements queue.Item.
func (n note) Key() string { return n.key }

// outbox holds the notifications that wait for one standing stream. It is bounded.
type outbox struct {
	tag  json.RawMessage // id of the subscriptions/listen whose stream it is; nil for a session
	wake chan struct{}   // holds one token when something waits

	mu      sync.Mutex
	waiting queue.Queue[note]
}

// maxOutbox and maxOutboxBytes bound the notifications without a key. The oldest are dropped.
const (
	maxOutbox      = 256
	maxOutboxBytes = 8 << 20
)

func newOutbox(tag json.RawMessage) *outbox { return &outbox{tag: tag, wake: make(chan struct{}, 1)} }

func (o *outbox) put(n note) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting.Put(n, queue.Bounds{Items: maxOutbox, Bytes: maxOutboxBytes})
	signal(o.wake)
}

// signal puts a token into a channel that holds one, unless it is there.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// drain sends everything in order. It stops early when stop is closed, and leaves the rest for the next reader.
func (o *outbox) drain(send func(method string, params json.RawMessage), stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			signal(o.wake)
			return
		default:
		}
		o.mu.Lock()
		n, ok := o.waiting.Next()
		o.mu.Unlock()
		if !ok {
			return
		}
		params, err := o.tagged(n.params)
		if err == nil {
			send(n.method, params)
		}
	}
}

// tagged adds to a notification which subscription it is for: "The server MUST include this key on every notification
// delivered via a subscriptions/listen stream".
func (o *outbox) tagged(params json.RawMessage) (json.RawMessage, error) {
	if o.tag == nil {
		return params, nil
	}
	if params == nil {
		params = json.RawMessage("{}")
	}
	meta, err := rawjson.Set(rawjson.GetObject(params, "_meta"), mcp.MetaKeySubscriptionID, o.tag)
	if err != nil {
		return nil, err
	}
	return rawjson.Set(params, "_meta", meta)
}
