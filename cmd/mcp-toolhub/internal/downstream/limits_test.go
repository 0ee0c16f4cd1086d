package downstream

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// sized is a ping of so many bytes.
func sized(id string, bytes int) string {
	frame := `{"jsonrpc":"2.0","method":"ping","params":{"x":""},"id":` + id + `}`
	return strings.Replace(frame, `""`, `"`+strings.Repeat("x", bytes-len(frame))+`"`, 1)
}

// TestClientMessageLimitOnStdio: a message of one byte too many is refused under its own id, so
// that nobody waits, and the limit is the one in force when the message comes.
func TestClientMessageLimitOnStdio(t *testing.T) {
	t.Parallel()
	const limit = 100_000
	s := newServer(t, Config{MaxMessageBytes: limit}, &far{})
	w := dial(t, s)
	w.handshake("2025-06-18")
	refused := func(id string, limit int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"invalid request: the message has more than %d bytes `+
			`(hub.limits.client_message): send less, or raise that in the hub's config"}}`, id, tool.CodeInvalidRequest,
			limit)
	}
	w.send(sized("1", limit-1)) // and its line break
	w.want(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	w.send(sized("2", limit), sized(`"x"`, 3*limit), `{"jsonrpc":"2.0","method":"notifications/x","params":{"x":"`+
		strings.Repeat("x", limit)+`"}}`,
		`{"jsonrpc":"2.0","id":3,"result":"`+strings.Repeat("x", limit)+`"}`)
	w.want(refused("2", limit), refused(`"x"`, limit), refused("null", limit), refused("null", limit))
	s.Apply(Config{MaxMessageBytes: limit + 1}, []string{"default"})
	w.send(sized("4", limit))
	w.want(`{"jsonrpc":"2.0","id":4,"result":{}}`) // which the SDK answers, in its own time
	w.send(sized("5", limit+1))
	w.want(refused("5", limit+1))
	s.Apply(Config{}, []string{"default"})
	w.send(sized("6", 10*limit))
	w.want(`{"jsonrpc":"2.0","id":6,"result":{}}`)
}

func TestClientMessageLimitOverHTTP(t *testing.T) {
	t.Parallel()
	const limit = 50_000
	s := newServer(t, Config{HTTP: HTTPConfig{MaxBodyBytes: limit}}, &far{})
	url := serve(t, s) + "/mcp"
	session := open(t, url, "2025-06-18")
	send := func(bytes int) (int, string) {
		status, _, got := post(t, url, sized("1", bytes), headerSession, session)
		return status, strings.Join(got, "")
	}
	if status, got := send(limit); status != 200 {
		t.Errorf("within the limit: %d %s", status, got)
	}
	if status, got := send(limit + 1); status != 413 ||
		!strings.Contains(got, "more than 50000 bytes (hub.limits.client_message)") {
		t.Errorf("beyond the limit: %d %s", status, got)
	}
	s.Apply(Config{HTTP: HTTPConfig{MaxBodyBytes: limit + 1}}, []string{"default"})
	if status, got := send(limit + 1); status != 200 {
		t.Errorf("the limit was raised: %d %s", status, got)
	}
}
