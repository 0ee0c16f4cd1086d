package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

const (
	postWithin = 5 * time.Second // of one message to the webhook
	maxPosts   = 16              // messages under way at a time; those beyond are not sent
)

// posts are the messages to the webhook that are under way. It is safe for concurrent use.
type posts struct {
	client  *http.Client
	running sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	open    int
	failing bool // the last one did not arrive, and the log says so
}

func newPosts() *posts {
	return &posts{client: &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Announce tells people elsewhere of a call that waits, by a message to the webhook at that
// address. It does not wait for that.
func (c *Console) Announce(ctx context.Context, hook string, v approval.View) {
	body, _ := json.Marshal(map[string]string{"text": c.message(v)})
	p := c.posts
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return
	case p.open >= maxPosts:
		p.note(c, fmt.Errorf("%d messages are under way", p.open))
		return
	}
	p.open++
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), postWithin)
	p.running.Go(func() {
		select {
		case <-c.done:
			cancel()
		case <-ctx.Done():
		}
	})
	p.running.Go(func() {
		err := p.post(ctx, hook, body)
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open--
		p.note(c, err)
	})
}

// note logs the first failure of several, and when messages arrive again. p.mu is held.
func (p *posts) note(c *Console, err error) {
	if p.closed || (err != nil) == p.failing {
		return
	}
	if p.failing = err != nil; p.failing {
		c.Logger.Warn("the webhook of policy.ask does not take messages: calls wait, and nobody is told of them there",
			"error", err)
		return
	}
	c.Logger.Info("the webhook of policy.ask takes messages again")
}

// post sends one message. Its errors do not hold the address, which is a secret.
func (p *posts) post(ctx context.Context, hook string, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, hook, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address cannot be used")
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := p.client.Do(r)
	var of *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s", postWithin)
	case errors.As(err, &of):
		return of.Err
	case err != nil:
		return errors.New("no answer")
	}
	_ = resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// close ends all messages, and waits for that. Console.done is closed.
func (p *posts) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.running.Wait()
}

// message is what people elsewhere are told of a call. Slack reads &, < and > as its own, and
// formats nothing between backquotes.
func (c *Console) message(v approval.View) string {
	var b strings.Builder
	line := func(name, text string, limit int) {
		if text != "" {
			fmt.Fprintf(&b, "%s: `%s`\n", name, inMessage.Replace(gate.Plain(text, limit)))
		}
	}
	b.WriteString("mcp-toolhub asks whether a call may run.\n")
	line("Tool", string(v.Binding.Tool), 200)
	line("It says that it does", v.Does, 300)
	line("Caller", v.Binding.Actor, 200)
	line("Client", v.Client, 200)
	line("Arguments", v.Arguments, 600)
	line("Why", v.Reason, 300)
	fmt.Fprintf(&b, "Answer until %s: %s", v.Expires.UTC().Format("15:04:05 UTC"), c.At()+Path+"approvals/"+string(v.ID))
	return b.String()
}

var inMessage = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "`", "'")
