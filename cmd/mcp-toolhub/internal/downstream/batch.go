package downstream

import (
	"context"
	"fmt"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// firstWithoutBatch is the revision that took JSON-RPC batches out of the protocol.
const firstWithoutBatch = "2025-06-18"

// maxBatch bounds the messages of one batch.
const maxBatch = 100

// splitBatch returns the messages of a batch, or why there is none.
func splitBatch(text []byte, version string) ([][]byte, error) {
	if version >= firstWithoutBatch {
		return nil, fmt.Errorf("batches are not part of protocol revision %s: send one message at a time", version)
	}
	var parts [][]byte
	_ = rawjson.Elements(text, func(e []byte) bool {
		parts = append(parts, e)
		return len(parts) <= maxBatch
	})
	if len(parts) == 0 || len(parts) > maxBatch {
		return nil, fmt.Errorf("a batch holds 1 to %d messages", maxBatch)
	}
	return parts, nil
}

// joinBatch returns the response to a batch.
func joinBatch(answers []pieces) pieces {
	out := [][]byte{[]byte("[")}
	for i, a := range answers {
		if i > 0 {
			out = append(out, []byte(","))
		}
		out = append(out, a.parts...)
	}
	return pieces{parts: append(out, []byte("]"))}
}

// receiveBatch answers the requests of a batch together, when all of them are done.
func (d *stdioDoor) receiveBatch(ctx context.Context, text []byte) {
	parts, err := splitBatch(text, d.client.ProtocolVersion)
	if err != nil {
		d.write(whole(jsonrpc.ErrorText(nil, jsonrpc.InvalidRequest(err.Error()))))
		return
	}
	b := &batch{door: d, missing: 1}
	for _, part := range parts {
		m := jsonrpc.Parse(part)
		switch {
		case m.Fault != nil && !isCall(m):
			b.expect().write(whole(jsonrpc.ErrorText(m.ID, m.Fault)))
		case m.IsRequest() && m.Method != tool.MethodListen: // which has no end to wait for
			d.dispatch(ctx, m, b.expect())
		default:
			d.dispatch(ctx, m, d)
		}
	}
	b.write(pieces{})
}

// batch gathers responses until none is missing.
type batch struct {
	door *stdioDoor

	mu      sync.Mutex
	missing int
	answers []pieces
}

// expect makes the batch wait for one response more.
func (b *batch) expect() responses {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missing++
	return b
}

// write takes one response. It is written later, with the others.
func (b *batch) write(text pieces) (written bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if text.parts != nil {
		b.answers = append(b.answers, text)
	}
	if b.missing--; b.missing == 0 && len(b.answers) > 0 {
		b.door.write(joinBatch(b.answers))
	}
	return false
}
