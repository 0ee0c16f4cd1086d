package upstream

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
)

// TestDrain checks that the connection of a stream whose end comes after the response is used again, and that a stream
// without an end is given up. On a busy machine an end may come too late now and then.
func TestDrain(t *testing.T) {
	t.Parallel()
	for _, ends := range []bool{true, false} {
		reused := false
		for try := 0; try < 20 && !reused && (ends || try == 0); try++ {
			reused = usedAgain(t, ends)
		}
		if reused != ends {
			t.Errorf("stream that ends: %v: connection used again: %v", ends, reused)
		}
	}
}

// usedAgain reports whether the connection of a stream that ends or not, once the response has come, is used again.
func usedAgain(t *testing.T, ends bool) (reused bool) {
	t.Helper()
	answered := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			return
		}
		_, _ = io.WriteString(w, "data: {}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-answered
		if !ends {
			<-r.Context().Done()
		}
	}))
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jsonrpc.NewEventReader(resp.Body, 1<<20, nil).Next(); err != nil {
		t.Fatal(err)
	}
	close(answered)
	drain(resp.Body)
	_ = resp.Body.Close()
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodHead, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err = srv.Client().Do(req); err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return reused
}
