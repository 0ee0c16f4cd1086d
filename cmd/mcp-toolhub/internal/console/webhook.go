package console

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
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
	body, err := json.Marshal(map[string]string{"text": c.message(v)})
	if err != nil {
		return // never: it is a text
	}
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
	fmt.Fprintf(&b, "Answer until %s: %s", v.Expires.UTC().Format("15:04:05 UTC"), c.At()+c.link(v.ID, v.Expires))
	return b.String()
}

var inMessage = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "`", "'")

// linkPath is where links of messages begin.
const linkPath = Path + "to/"

// link returns the path that leads to an approval until it expires. It answers nothing, and shows nothing to who is not signed in.
func (c *Console) link(id approval.ID, until time.Time) string {
	text := fmt.Sprintf("%s.%d", id, until.Unix())
	return linkPath + text + "." + c.sign(text)
}

// sign proves that the hub has made a link. The key ends with the hub, as approvals do.
func (c *Console) sign(text string) string {
	mac := hmac.New(sha256.New, c.key)
	mac.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// linked returns the path of the approval that a link leads to; "" where the hub has not made the link, or it has expired.
func (c *Console) linked(link string) string {
	at := max(strings.LastIndexByte(link, '.'), 0)
	id, until, _ := strings.Cut(link[:at], ".")
	ends, err := strconv.ParseInt(until, 10, 64)
	if err != nil || !hmac.Equal([]byte(link[at:]), []byte("."+c.sign(link[:at]))) || time.Now().Unix() >= ends {
		return ""
	}
	return Path + "approvals/" + id
}

// follow leads from a link to its approval. Who is not signed in gets there by signing in.
func (c *Console) follow(w http.ResponseWriter, r *http.Request) {
	v, link := &visit{c, w, r, c.sessions.of(r)}, r.PathValue("link")
	path := c.linked(link)
	switch {
	case path == "":
		v.show(&page{Name: "message", Title: "This link leads nowhere", Status: http.StatusNotFound,
			Data: "The time for an answer is over, the hub has been started anew, or the link was changed."})
	case v.session != nil:
		v.show(&page{Redirect: path})
	default:
		http.SetCookie(w, &http.Cookie{Name: c.sessions.cookie + "_to", Value: link, Path: Path + "signin",
			MaxAge:   int(time.Hour / time.Second),
			HttpOnly: true, SameSite: http.SameSiteLaxMode})
		v.show(&page{Name: "entry", Title: "Sign in", Status: http.StatusUnauthorized,
			Data: "A call waits for an answer."})
	}
}

// goal is where a browser goes on that has signed in.
func (c *Console) goal(r *http.Request) string {
	if to, err := r.Cookie(c.sessions.cookie + "_to"); err == nil {
		if path := c.linked(to.Value); path != "" {
			return path
		}
	}
	return Path + "servers"
}
