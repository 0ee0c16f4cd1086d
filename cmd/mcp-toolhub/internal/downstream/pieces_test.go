package downstream

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

func TestPieces(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, maxJoined - 4, maxJoined, 3 * maxJoined} {
		p := pieces{parts: [][]byte{[]byte("{"), []byte(strings.Repeat(" ", n)), []byte("}")}}
		framed := p.framed([]byte("<"), ">")
		if want := "<{" + strings.Repeat(" ", n) + "}>"; string(bytes.Join(framed.parts, nil)) != want ||
			framed.size() != len(want) {
			t.Errorf("%d bytes: framed %.20q", n, bytes.Join(framed.parts, nil))
		}
		if small := n+4 <= maxJoined; small != (len(framed.parts) == 1) {
			t.Errorf("%d bytes are written in %d parts", n, len(framed.parts))
		}
	}
	line, err := pieces{parts: [][]byte{[]byte("{\"a\":"), []byte("\n1}")}}.line()
	if err != nil || string(bytes.Join(line.parts, nil)) != `{"a":1}` {
		t.Errorf("line %s, %v", bytes.Join(line.parts, nil), err)
	}
}

// TestLargeResultsAreFreedOnceWritten checks that the memory of a large result is given back after it was written and
// not before, and that of other results never.
func TestLargeResultsAreFreedOnceWritten(t *testing.T) {
	t.Parallel()
	large := `{"content":[],"a":"` + strings.Repeat("x", 3<<20) + `"}`
	small := `{"content":[],"a":"` + strings.Repeat("x", 100) + `"}`
	var freed atomic.Int64
	far := &far{execute: func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
		text := []byte(large)
		if e.Tool.Native == "echo" {
			text = []byte(small)
		}
		return tool.Reply{Result: text, Free: func() {
			freed.Add(1)
			clear(text) // somebody else's message
		}}, nil
	}}
	s := newServer(t, Config{}, far)
	call := func(id int, name string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"mcp.s.%s","arguments":{}}}`, id, name)
	}
	meta := `,"_meta":{"toolhub/invocation":{"invocation_id":"INV","status":"succeeded"}}}`
	answer := func(id int, result string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, id, strings.TrimSuffix(result, "}")+meta)
	}
	check := func(what string, got, want string, frees int64) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %.100s… of %d bytes, want %.100s… of %d", what, got, len(got), want, len(want))
		}
		if n := freed.Swap(0); n != frees {
			t.Errorf("%s: freed %d times, want %d", what, n, frees)
		}
	}

	http := httptest.NewServer(s.Handler())
	defer http.Close()
	session := open(t, http.URL+"/mcp", "2025-11-25")
	for id, name := range []string{"slow", "echo"} {
		_, _, got := post(t, http.URL+"/mcp", call(id, name), "Mcp-Session-Id", session)
		check("HTTP "+name, got[0], answer(id, map[string]string{"slow": large, "echo": small}[name]), int64(1-id))
	}

	w := dial(t, s)
	w.handshake("2025-03-26")
	w.send("[" + call(1, "slow") + "]")
	check("batch", w.next(), "["+answer(1, large)+"]", 0)
	w.send(call(2, "slow"))
	got := w.next()
	w.send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	w.next()
	_ = w.in.Close()
	<-w.ended // so that the call has returned
	check("stdio", got, answer(2, large), 1)
}
