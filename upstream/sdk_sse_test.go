package upstream_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestSDKLosesMessagesOverSSE holds the reasons for a transport of the hub's own: what the hub skips, counts or takes apart
// ends or changes a session over the SDK's. If it fails, the SDK's may do.
func TestSDKLosesMessagesOverSSE(t *testing.T) {
	t.Parallel()
	const last = `{"jsonrpc":"2.0","id":7,"result":{"z":1,"a":2}}`
	for name, event := range map[string]string{
		"event of another name": "event: ping\ndata: now\n\n",
		"no JSON":               "data: hello\n\n",
		"batch":                 "data: [" + last + "]\n\n",
		"event over the limit":  "data: " + strings.Repeat("x", 2000) + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := readOverSSE(t, event+"data: "+last+"\n\n"); err == nil {
				t.Errorf("the SDK has read %#v", got)
			}
		})
	}
	t.Run("big id", func(t *testing.T) {
		t.Parallel()
		m, err := readOverSSE(t, "data: "+`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`+"\n\n")
		if err != nil {
			t.Fatal(err)
		}
		text, err := jsonrpc.EncodeMessage(m)
		if err != nil || strings.Contains(string(text), "9007199254740993") {
			t.Errorf("the SDK keeps the id: %s, %v", text, err)
		}
	})
}

// readOverSSE returns the first message that the SDK reads from a server that sends events after a POST, and no more.
func readOverSSE(t *testing.T, events string) (jsonrpc.Message, error) {
	t.Helper()
	posted := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			close(posted)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: endpoint\ndata: /post\n\n")
		_ = http.NewResponseController(w).Flush()
		<-posted
		_, _ = io.WriteString(w, events)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(srv.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	conn, err := (&mcp.SSEClientTransport{Endpoint: srv.URL, MaxEventSize: 1000}).Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.Write(ctx, &jsonrpc.Request{Method: "notifications/initialized"}); err != nil {
		t.Fatal(err)
	}
	m, err := conn.Read(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	return m, err
}
