package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestOddHTTP: what servers, and what stands before them, do besides the protocol.
func TestOddHTTP(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer     func(w http.ResponseWriter, r *http.Request, id string)
		want, lack string // in the result, or in the message of the failure
	}{
		"a refusal as text": {func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, "the quota of sesame-seeds is used up"+strings.Repeat(".", 300))
		}, "The server says: the quota of [masked] is used up.....", strings.Repeat(".", 200)},
		"a refusal as a page": {func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, "<html>sorry")
		}, "(HTTP 400)", "sorry"},
		"an error without an id": {func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no such project"}}`)
		}, "no such project", ""},
		"another encoding": {func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Content-Encoding", "br")
			fmt.Fprint(w, "junk")
		}, `Content-Encoding "br"`, ""},
		"a cookie": {func(w http.ResponseWriter, r *http.Request, id string) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"cookie":%q}}`, id, r.Header.Get("Cookie"))
		}, "node=7", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, _ := overHTTP(t, "s", upstreamtest.Options{Intercept: func(w http.ResponseWriter, r *http.Request, body []byte) bool {
				var m struct {
					ID     json.RawMessage
					Method string
				}
				if _ = json.Unmarshal(body, &m); m.Method != "tools/call" {
					http.SetCookie(w, &http.Cookie{Name: "node", Value: "7"})
					return false
				}
				c.answer(w, r, string(m.ID))
				return true
			}})
			cfg.Headers = map[string]string{"X-Key": "sesame-seeds"}
			h := start(t, cfg)
			h.ready(t, "s")
			reply, err := h.call(t.Context(), "s", "echo", `{}`)
			if text := fmt.Sprint(string(reply.Result), err); !strings.Contains(text, c.want) || c.lack != "" && strings.Contains(text, c.lack) {
				t.Errorf("got %s, want %q, and not %q", text, c.want, c.lack)
			}
		})
	}
}

// lists is a server on stdio for which sh writes the answer to the nth tools/list with n, and does more with each line.
func lists(more, answer string) upstream.ServerConfig {
	return upstream.ServerConfig{ID: "s", Transport: upstream.Stdio, Command: "/bin/sh", Args: []string{"-c", `n=0
		tool() { echo '{"name":"'$1'","inputSchema":{"type":"object"}}'; }
		changed() { echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'; }
		while read -r line; do
		id=${line#*\"id\":}; id=${id%%,*}
		case $line in ` + more + `
		*server/discover*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no such method"}}' ;;
		*initialize\"*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}}}}' ;;
		*tools/list*) n=$((n+1)); ` + answer + ` ;;
		*hang*) ;;
		*tools/call*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"n":'$n'}}' ;;
		esac; done`}}
}

// TestShorterListIsReadAgain: where a list becomes shorter, the next call has it read again.
func TestShorterListIsReadAgain(t *testing.T) {
	t.Parallel()
	h := start(t, lists("", `all=$(tool t)
		[ $n = 2 ] || all=$all,$(tool u)
		echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":['$all']}}'
		[ $n != 1 ] || changed`))
	h.ready(t, "s")
	eventually(t, "the list becomes shorter", func() bool { return h.names("s") == "t" })
	h.mustCall(t, "s", "t", `{}`)
	eventually(t, "it is read again", func() bool { return strings.HasSuffix(h.names("s"), "u") })
	for range 3 {
		h.mustCall(t, "s", "t", `{}`)
	}
	if got := string(h.mustCall(t, "s", "t", `{}`)); got != `{"n":3}` {
		t.Errorf("lists: %s", got)
	}
}

// TestChangesWithEachList: a server that tells of a change with each list is asked ever more rarely.
func TestChangesWithEachList(t *testing.T) {
	t.Parallel()
	began := time.Now()
	h := start(t, lists("", `echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":['$(tool t$n)']}}'; changed`))
	h.ready(t, "s")
	eventually(t, "the fifth list comes", func() bool { return h.names("s") == "t5" })
	if took := time.Since(began); took < 3750*time.Millisecond {
		t.Errorf("five lists within %s", took)
	}
}

// TestDeathByCancellation: a server that dies of notifications/cancelled is sent two of them, and no more.
func TestDeathByCancellation(t *testing.T) {
	t.Parallel()
	record := filepath.Join(t.TempDir(), "record")
	h := start(t, lists(`*notifications/cancelled*) echo c >>'`+record+`'; exit 1 ;; *hang*) echo h >>'`+record+`' ;;`,
		`echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":['$(tool t),$(tool hang)']}}'`))
	recorded := func() string {
		text, _ := os.ReadFile(record)
		return strings.ReplaceAll(string(text), "\n", "")
	}
	for _, want := range []string{"h", "hch", "hchch", "hchchh"} {
		eventually(t, "a call is answered", func() bool { _, err := h.call(t.Context(), "s", "t", `{}`); return err == nil })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = h.call(ctx, "s", "hang", `{}`)
		}()
		eventually(t, "the call is at the server: "+want, func() bool { return recorded() == want })
		cancel()
		<-done
		if want == "h" || want == "hch" {
			eventually(t, "the server dies", func() bool { return recorded() == want+"c" })
		}
	}
}

// TestEmptyCursor: on 2026-07-28 an empty text is a cursor; before, it is none.
func TestEmptyCursor(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{true, false} {
		cfg, _ := overHTTP(t, "s", upstreamtest.Options{Script: upstreamtest.Script{Modern: modern},
			Intercept: func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
				var m struct {
					ID     json.RawMessage
					Method string
					Params struct{ Cursor *string }
				}
				if _ = json.Unmarshal(body, &m); m.Method != "tools/list" {
					return false
				}
				name, next := "first", `,"nextCursor":""`
				if m.Params.Cursor != nil {
					name, next = "second", ""
				}
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","tools":[{"name":%q,"inputSchema":{"type":"object"}}]%s}}`, m.ID, name, next)
				return true
			}})
		h := start(t, cfg)
		if st := h.ready(t, "s"); (st.Tools == 2) != modern {
			t.Errorf("modern %t: %s", modern, h.names("s"))
		}
	}
}
