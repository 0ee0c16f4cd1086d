//go:build e2e

package cli

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// What the person who allows a call says reaches the model, behind what the tool said, on every revision.
func TestSentenceOfWhoAllows(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{}, nil)
	for _, version := range []string{rev2025June, rev2025, rev2026} {
		x := &exchange{w: p.client(version).able().open(), answer: answerWith("allow_once", "only \\\"this\\\" time")}
		got := x.call("mcp.s.echo", `{"text":"`+version+`"}`)
		if !strings.Contains(got, `"content":[{"type":"text","text":"The person who allowed this call says: only \"this\" time","_meta":{"toolhub/feedback":true}}]`) ||
			!strings.Contains(got, `"structuredContent":`) {
			t.Errorf("%s: %s", version, got)
		}
	}
	if log := p.journal(); strings.Count(log, `"accept_feedback":"only \"this\" time"`) != 3 {
		t.Error("it is not in the decisions")
	}
}

// A session's answers are forgotten when its client ends it. Where there are no sessions they stay, for their time.
func TestGrantsEndWithTheirSession(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{}, nil)
	granted := func() int {
		all, err := p.hub().Grants(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range all {
			if !g.Session || g.Expires == nil || time.Until(*g.Expires) > 12*time.Hour {
				t.Errorf("%+v", g)
			}
		}
		return len(all)
	}
	allow := func(version string) *wire {
		x := &exchange{w: p.client(version).able().open(), answer: answerWith("allow_session", "")}
		if got := x.call("mcp.s.echo", `{}`); !strings.Contains(got, `"status":"succeeded"`) {
			t.Fatal(got)
		}
		return x.w
	}
	modern := allow(rev2026)
	deleted := allow(rev2025)
	if n := granted(); n != 2 {
		t.Errorf("%d grants", n)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, deleted.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	deleted.setHeaders(req)
	if _, err := httpDo(req); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the grant of the ended session is gone", func() bool { return granted() == 1 })
	x := &exchange{w: modern, answer: answerWith("deny_once", "")}
	if got := x.call("mcp.s.echo", `{}`); len(x.asked) != 0 || !strings.Contains(got, `"status":"succeeded"`) {
		t.Errorf("without sessions: asked %v, %s", x.asked, got)
	}
}
