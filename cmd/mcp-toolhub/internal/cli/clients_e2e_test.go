//go:build e2e

package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestClientsNeverMeet: many clients use the same ids and the same progress tokens at once, and each gets its own.
func TestClientsNeverMeet(t *testing.T) {
	t.Parallel()
	hub := startHub(t, "hub.json", configText(t, map[string]any{
		"pipe": child(upstreamtest.Script{}),
		"web":  map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{Script: upstreamtest.Script{Modern: true}})},
	}, nil))
	const clients, rounds = 20, 3
	begin := make(chan struct{})
	var running sync.WaitGroup
	for who := range clients {
		w := wireHTTP(t, hub.url+"/mcp", []string{rev2025, rev2026}[who%2]).open()
		server := []string{"pipe", "web"}[who/2%2]
		running.Go(func() {
			<-begin
			for range rounds {
				w.ids = 0 // everybody's ids are 1 and 2
				checkOwnProgress(t, w, "mcp."+server+".progress", clients+who)
				result := w.result("mcp."+server+".echo", fmt.Sprintf(`{"who":%d}`, who), ownRun(clients+who))
				if !strings.Contains(result, fmt.Sprintf(`"arguments":{"who":%d}`, who)) {
					t.Errorf("client %d got %s", who, result)
				}
			}
		})
	}
	close(begin)
	running.Wait()
}

// ownRun is the _meta of a client with the token of all, whose calls wait for nobody else's.
func ownRun(n int) string { return fmt.Sprintf(`"progressToken":"same","toolhub/run":"%d"`, n) }

// checkOwnProgress calls for n reports, a number that no other client asks for, and wants these and a result.
func checkOwnProgress(t *testing.T, w *wire, tool string, n int) {
	t.Helper()
	messages := w.send(w.call(tool, fmt.Sprintf(`{"n":%d}`, n), ownRun(n)))
	if len(messages) != n+1 || !strings.HasPrefix(messages[n], `{"jsonrpc":"2.0","id":1,"result":`) {
		t.Errorf("client %d got %d messages: %.300s", n, len(messages), messages[len(messages)-1])
		return
	}
	for i, m := range messages[:n] {
		if want := fmt.Sprintf(`"progressToken":"same","progress":%d,"total":%d,`, i+1, n); !strings.Contains(m, want) {
			t.Errorf("client %d got %s, want %s", n, m, want)
		}
	}
}

// A cancellation ends the call of the client that sent it, not one of the same id.
func TestCancellationsNeverMeet(t *testing.T) {
	t.Parallel()
	g := newTurnstile(t)
	hub := startHub(t, "hub.json", configText(t, map[string]any{"g": g.entry()}, nil))
	answers := map[string]chan string{}
	clients := map[string]*wire{}
	for _, who := range []string{"a", "b"} {
		w, answer := wireHTTP(t, hub.url+"/mcp", rev2025).open(), make(chan string, 1)
		clients[who], answers[who] = w, answer
		go func() {
			r := w.call("mcp.g.gate", `{"who":"`+who+`"}`, `"progressToken":1`)
			r.id = "7"
			_, _, messages := w.post(r)
			answer <- strings.Join(messages, "\n")
		}()
		await(t, g.reached)
	}
	note := rawRequest{method: "notifications/cancelled", params: `{"requestId":7}`}
	if status, _, _ := clients["a"].post(note); status != http.StatusAccepted {
		t.Errorf("cancelled: HTTP %d", status)
	}
	if who := await(t, g.left); who != "a" {
		t.Errorf("the call of %q was given up", who)
	}
	if got := await(t, answers["a"]); !strings.Contains(got, `"status":"canceled"`) {
		t.Errorf("a got %s", got)
	}
	close(g.lock("b"))
	if got := await(t, answers["b"]); !strings.Contains(got, "for b") || !strings.Contains(got, `"status":"succeeded"`) {
		t.Errorf("b got %s", got)
	}
	checkLeavingCancels(t, hub.url, g)
}

// checkLeavingCancels: a client of 2026-07-28 that goes away ends its call and no other.
func checkLeavingCancels(t *testing.T, url string, g *turnstile) {
	t.Helper()
	stay, answer := wireHTTP(t, url+"/mcp", rev2026), make(chan string, 1)
	go func() {
		_, _, messages := stay.post(stay.call("mcp.g.gate", `{"who":"stays"}`, `"toolhub/run":"stays"`))
		answer <- strings.Join(messages, "\n")
	}()
	await(t, g.reached)
	leave := wireHTTP(t, url+"/mcp", rev2026)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		resp, err := http.DefaultClient.Do(leave.newRequest(leave.call("mcp.g.gate", `{"who":"leaves"}`, `"toolhub/run":"leaves"`)).WithContext(ctx))
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		gone <- err
	}()
	await(t, g.reached)
	cancel()
	if <-gone == nil {
		t.Error("the client that left was answered")
	}
	if who := await(t, g.left); who != "leaves" {
		t.Errorf("the call of %q was given up", who)
	}
	close(g.lock("stays"))
	if got := await(t, answer); !strings.Contains(got, "for stays") {
		t.Errorf("the client that stayed got %s", got)
	}
}

// A cancellation that comes on the heels of its call finds it, over stdio, where nothing can overtake it.
func TestCancelRightBehindTheCall(t *testing.T) {
	t.Parallel()
	config := configText(t, map[string]any{"far": child(upstreamtest.Script{})}, nil)
	for _, version := range []string{rev2025, rev2026} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			w := wireHub(t, config, version).open()
			w.ready("mcp.far.hang")
			for range 30 {
				r := w.call("mcp.far.hang", `{}`, "")
				note := rawRequest{method: "notifications/cancelled", params: w.params(`"requestId":`+r.id, "")}
				w.write(r.text(), note.text())
				// A cancelled call is not answered; its id is free again once it has ended.
				again := w.call("mcp.far.nope", `{}`, "")
				again.id = r.id
				for got := "is in use"; strings.Contains(got, "is in use"); {
					w.write(again.text())
					if got = w.nextWith(`"id":` + r.id + `,`); strings.Contains(got, `"result"`) {
						t.Fatalf("the cancelled call was answered with %s", got)
					}
				}
			}
		})
	}
}
