//go:build e2e

package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// Over stdio the client's own question is enough, but for what is dangerous; rules that deny hold.
func TestPermissionOverStdio(t *testing.T) {
	t.Parallel()
	tools := []json.RawMessage{upstreamtest.Tool("echo"), upstreamtest.Tool("risky"), upstreamtest.Tool("never")}
	config := configText(t, map[string]any{"s": child(upstreamtest.Script{Tools: tools})}, map[string]any{"policy": map[string]any{
		"tools": []map[string]any{{"match": "mcp.s.risky", "tags": []string{"dangerous"}}},
		"rules": []map[string]any{{"match": "mcp.s.never", "when": "true", "then": "deny"}}}})
	for _, version := range []string{rev2025June, rev2025, rev2026} {
		w := wireHub(t, config, version).able().open()
		w.ready("mcp.s.echo")
		x := &exchange{w: w, answer: answerWith("deny_once", "no")}
		if r := x.call("mcp.s.echo", `{}`); !strings.Contains(r, `"status":"succeeded"`) || len(x.asked) != 0 {
			t.Errorf("%s: asked %d times: %s", version, len(x.asked), r)
		}
		if r := x.call("mcp.s.risky", `{}`); !strings.Contains(r, "approval_rejected") || len(x.asked) != 1 {
			t.Errorf("%s, dangerous: asked %d times: %s", version, len(x.asked), r)
		}
		if r := x.call("mcp.s.never", `{}`); strings.Contains(r, `"status":"succeeded"`) || len(x.asked) != 1 {
			t.Errorf("%s, denied: %s", version, r)
		}
	}
}

// requested is what the address base answers to a method and path.
func requested(t *testing.T, base string, route [2]string, host string, headers map[string]string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience/6) // a stream that is let in does not end
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, route[0], base+route[1], strings.NewReader(`{"choice":"allow_once"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	got, err := httpDo(req)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// The door for clients has no way into the API for approvals. No attempt there answers the question that is open, and no odd answer at
// the socket does.
func TestAttackTheAPI(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{}, nil)
	h, w := p.hub(), p.client(rev2025).open()
	answered := make(chan string, 1)
	go func() { answered <- strings.Join(w.send(w.call("mcp.s.echo", `{}`, "")), "\n") }()
	v := p.pending(h)
	_, api := p.notice(t)
	for _, route := range [][2]string{{"GET", "/approvals"}, {"GET", "/approvals/watch"}, {"GET", "/approvals/" + string(v.ID)},
		{"POST", "/approvals/" + string(v.ID)}, {"GET", "/grants"}, {"DELETE", "/grants/grt_x"}} {
		if got := requested(t, p.url, route, "", nil); strings.HasPrefix(got, "200 ") || strings.Contains(got, string(v.ID)) {
			t.Errorf("at the door for clients, %v: %s", route, got)
		}
	}
	for _, body := range []string{``, `null`, `[]`, `{"choice":"allow_once","x":1}`, `{"choice":"ALLOW_ONCE"}`, `{"choice":"allow"}`,
		`{"choice":"allow_once","arguments":[1]}`, `{"choice":"allow_once"}{"choice":"allow_once"}`, `{"choice":"deny_once","arguments":{}}`} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, api+"/approvals/"+string(v.ID), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := httpDo(req); err != nil || strings.HasPrefix(got, "200 ") {
			t.Errorf("the answer %s: %s, %v", body, got, err)
		}
	}
	if now, err := h.Approval(t.Context(), string(v.ID)); err != nil || now.State != approval.Pending {
		t.Fatalf("after the attempts: %+v, %v", now, err)
	}
	if _, err := h.Answer(t.Context(), string(v.ID), control.Reply{Choice: policy.DenyOnce}); err != nil {
		t.Error(err)
	}
	if got := await(t, answered); !strings.Contains(got, "approval_rejected") {
		t.Errorf("%s", got)
	}
}
