//go:build e2e

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
)

// hookedAsk is policy.ask with a webhook.
func hookedAsk(address string) map[string]any {
	return map[string]any{"ask": map[string]any{"channels": []any{"webhook", "queue"}, "webhook": address}}
}

// webhookOf is a webhook that answers with a status. It sends the texts that come to told.
func webhookOf(t *testing.T, status int) (address string, told chan string) {
	t.Helper()
	told = make(chan string, 20)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var message map[string]string
		if err != nil || json.Unmarshal(body, &message) != nil || len(message) != 1 || r.Method != http.MethodPost ||
			r.URL.Path != "/hook-secret" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %s %v", r.Method, r.URL, body, err)
		}
		w.WriteHeader(status)
		told <- message["text"]
	}))
	t.Cleanup(s.Close)
	return s.URL + "/hook-secret", told
}

var approvalLink = regexp.MustCompile(`(http://[^ /]+)(/ui/approvals/[A-Za-z0-9_]+)$`)

// TestWebhookTells: people elsewhere are told once of a question that waits, without secrets and without what Slack would format. The link in it
// leads a browser that is signed in to the approval. It answers nothing.
func TestWebhookTells(t *testing.T) {
	t.Parallel()
	address, told := webhookOf(t, http.StatusOK)
	p := startPermitted(t, hookedAsk(address), nil)
	h := p.hub()
	const hostile = `{"text":"<!channel> & <http://evil.example|here>` + "`*b*`" + `","password":"hunter2"}`
	w := p.client(rev2025).open()
	rest := w.waits(w.call("mcp.s.echo", hostile, `"progressToken":"p"`))
	v, text := p.pending(h), await(t, told)
	second := w.waits(w.call("mcp.s.echo", hostile, `"progressToken":"q"`))
	for _, has := range []string{"Tool: `mcp.s.echo`", "Caller: `actor:http/local`", "It says that it does: `", "&lt;!channel&gt; &amp; &lt;http://evil.example|here&gt;'*b*'",
		"[masked]", "Why: `", "Answer until "} {
		if !strings.Contains(text, has) {
			t.Errorf("%q is missing in %s", has, text)
		}
	}
	if strings.Contains(text, "hunter2") || strings.Contains(text, "<") {
		t.Errorf("the message: %s", text)
	}
	link := approvalLink.FindStringSubmatch(text)
	if link == nil || link[1] != p.url {
		t.Fatalf("no link to %s: %s", p.url, text)
	}
	page := "/ui/approvals/" + string(v.ID)
	stranger := newPageClient(t, p.url)
	for _, path := range []string{link[2], link[2] + "A"} {
		if resp, text := stranger.do(http.MethodGet, path, ""); resp.StatusCode != http.StatusUnauthorized || strings.Contains(text, "echo") {
			t.Errorf("%s for a stranger: %d %s", path, resp.StatusCode, text)
		}
	}
	if resp, _ := stranger.do(http.MethodPost, link[2], "choice=allow_once"); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("an answer with the link alone: %d", resp.StatusCode)
	}
	opens, err := h.OpenPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if resp, _ := stranger.do(http.MethodGet, opens, ""); resp.StatusCode != http.StatusOK {
		t.Errorf("signing in: %d", resp.StatusCode)
	}
	if resp, text := stranger.do(http.MethodGet, link[2], ""); resp.Request.URL.Path != page || !strings.Contains(text, "ui code") {
		t.Errorf("the link leads to %s: %s", resp.Request.URL, text)
	}
	if now, err := h.Approval(t.Context(), string(v.ID)); err != nil || now.State != approval.Pending {
		t.Errorf("the link has answered: %+v, %v", now, err)
	}
	if _, err := h.Answer(t.Context(), string(v.ID), control.Reply{Choice: policy.AllowOnce}); err != nil {
		t.Fatal(err)
	}
	if got := rest() + second(); strings.Count(got, `"status":"succeeded"`) != 2 {
		t.Errorf("the calls: %s", got)
	}
	rest = w.waits(w.call("mcp.s.echo", `{"text":"another"}`, `"progressToken":"r"`))
	if text := await(t, told); !strings.Contains(text, "another") || len(told) > 0 {
		t.Errorf("told again: %s", text)
	}
	if _, err := h.Answer(t.Context(), string(p.pending(h).ID), control.Reply{Choice: policy.DenyOnce}); err != nil {
		t.Fatal(err)
	}
	rest()
	if strings.Contains(p.log(), "hook-secret") || strings.Contains(p.journal(), "hook-secret") {
		t.Error("the hub has written the webhook's address down")
	}
}

// TestWebhookLinks: the link is at the address that others reach; for a hub on stdio, at that of its page.
func TestWebhookLinks(t *testing.T) {
	t.Parallel()
	address, told := webhookOf(t, http.StatusOK)
	const public = "https://hub.example.com"
	p := startPermitted(t, hookedAsk(address), map[string]any{"hub": map[string]any{"http": map[string]any{"public_url": public}}})
	w := p.client(rev2025).open()
	_, end := w.begin(w.call("mcp.s.echo", `{"text":"a"}`, `"progressToken":"p"`))
	defer end()
	if text := await(t, told); !strings.Contains(text, " "+public+"/ui/approvals/") {
		t.Errorf("the message: %s", text)
	}
	if opens, err := p.hub().OpenPage(t.Context()); err != nil || !strings.HasPrefix(opens, public+"/ui/signin?") {
		t.Errorf("the page opens at %q, %v", opens, err)
	}

	s := wireHubIn(t, t.TempDir(), configText(t, p.far, map[string]any{"policy": map[string]any{"mode": "default",
		"ask": hookedAsk(address)["ask"]}}), rev2025)
	s.open().ready("mcp.s.echo")
	s.begin(s.call("mcp.s.echo", `{"text":"b"}`, `"progressToken":"p"`))
	link := approvalLink.FindStringSubmatch(await(t, told))
	if link == nil {
		t.Fatal("no link")
	}
	if status, text := newPageClient(t, link[1]).get(link[2]); status != http.StatusUnauthorized || !strings.Contains(text, "mcp-toolhub ui") {
		t.Errorf("the link leads to %d %s", status, text)
	}
}

// TestBrokenWebhooks: a webhook that breaks off, fails or hangs delays no call, and is logged once for all messages, without its address.
func TestBrokenWebhooks(t *testing.T) {
	t.Parallel()
	failing, _ := webhookOf(t, http.StatusInternalServerError)
	moved := httptest.NewServer(http.RedirectHandler("/elsewhere", http.StatusTemporaryRedirect))
	breaking := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	}))
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(release); hanging.Close(); moved.Close(); breaking.Close() })
	for name, c := range map[string]struct{ address, says string }{
		"fails":  {failing, "status 500"},
		"moved":  {moved.URL + "/hook-secret", "status 307"},
		"breaks": {breaking.URL + "/hook-secret", "EOF"},
		"hangs":  {hanging.URL + "/hook-secret", "no answer within 5s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPermitted(t, hookedAsk(c.address), nil)
			h := p.hub()
			w := p.client(rev2025).open()
			for i := range 3 {
				rest := w.waits(w.call("mcp.s.echo", fmt.Sprintf(`{"text":"%d"}`, i), `"progressToken":"p"`))
				v := p.pending(h)
				if name == "hangs" && i == 0 && strings.Contains(p.log(), "does not take messages") {
					t.Error("the call has waited for the webhook")
				}
				if _, err := h.Answer(t.Context(), string(v.ID), control.Reply{Choice: policy.AllowOnce}); err != nil {
					t.Fatal(err)
				}
				if got := rest(); !strings.Contains(got, `"status":"succeeded"`) {
					t.Errorf("the call: %s", got)
				}
			}
			if err := p.waitFor(regexp.MustCompile("does not take messages.*" + c.says)); err != nil {
				t.Fatal(err)
			}
			if err := p.stop(); err != nil {
				t.Errorf("the hub ends with %v", err)
			}
			if log := p.log(); strings.Count(log, "does not take messages") != 1 || strings.Contains(log, "hook-secret") {
				t.Errorf("the log: %s", log)
			}
		})
	}
}
