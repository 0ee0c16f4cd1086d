package console

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
)

// hangingHook is a webhook that takes a message and does not answer.
type hangingHook chan struct{}

func (h hangingHook) RoundTrip(r *http.Request) (*http.Response, error) {
	close(h)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestWebhookHangsAtTheEnd: a hub that ends does not wait for its webhook.
func TestWebhookHangsAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, hook := New(Options{At: func() string { return "" }}), make(hangingHook)
		c.posts.client.Transport = hook
		c.Announce(t.Context(), "https://hook.example", approval.View{})
		<-hook
		began := time.Now()
		if c.Close(); time.Since(began) > 0 {
			t.Errorf("it waits for %s", time.Since(began))
		}
	})
}
