package transport

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

const (
	MaxErrorBody   = 64 << 10 // bytes read of a body that reports an error
	maxIdlePerHost = 64
	maxIdleTime    = 90 * time.Second
	maxHead        = 256 << 10 // bytes of a response's head
	dialTimeout    = 10 * time.Second
	CancelPatience = 5 * time.Second // for a notification that nobody waits for
)

// HTTP reaches one server over HTTP. Its connections outlive sessions.
type HTTP struct {
	URL     *url.URL
	headers map[string]string
	Pool    *http.Transport
	Memory  *budget.Share  // for large responses
	Tokens  Tokens         // nil where the headers are all
	Flights sync.WaitGroup // calls, and what they begin; they may outlive their session

	streamFirst atomic.Bool // it takes Accept in that order alone
}

// Tokens hands out the access tokens of one server.
type Tokens interface {
	// Authorize adds the one to send now to a request, and returns it; "" for none.
	Authorize(req *http.Request) (token string, err error)

	// Covers reports whether the token may be sent to that address, to which the server redirects. It
	// is true where there is no token.
	Covers(u *url.URL) bool

	// Refused is told that the server answered a request with that token with 401 or 403, and reports
	// whether it is to be sent once more, with what Authorize adds now.
	Refused(req *http.Request, token string, status int, h http.Header) (again bool)

	// Challenged is told of a call that was answered with 401.
	Challenged(h http.Header)
}

// NewHTTP returns the way to the server of cfg. memory bounds that of large responses.
func NewHTTP(cfg settings.Server, memory *budget.Share) (*HTTP, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("use url %q: not an http or https URL", secret.URL(cfg.URL))
	}
	return &HTTP{URL: u, headers: cfg.Headers, Memory: memory, Pool: &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    dialTimeout,
		ExpectContinueTimeout:  time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           maxIdlePerHost,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        maxIdleTime,
		MaxResponseHeaderBytes: maxHead,
	}}, nil
}

// Client returns a client for one connection: its requests carry the server's headers, and the cookies that the server
// has set on the connection.
func (s *HTTP) Client() *http.Client {
	cookies, _ := cookiejar.New(nil) // it never fails
	return &http.Client{Transport: &originTransport{s}, CheckRedirect: s.checkRedirect, Jar: cookies}
}

// checkRedirect follows redirects only to the same origin, with the same method, and not out of the
// resource that an access token is for. Others would carry a call's content, and the server's
// credentials, to somebody whom the operator has not named.
func (s *HTTP) checkRedirect(req *http.Request, via []*http.Request) error {
	if !sameOrigin(req.URL, s.URL) || req.Method != via[0].Method || len(via) >= 5 ||
		s.Tokens != nil && !s.Tokens.Covers(req.URL) {
		return s.redirected(*req.URL)
	}
	return nil
}

func (s *HTTP) redirected(to url.URL) error {
	if s.URL.Scheme == "https" { // a server behind a proxy may not know that it is reached so
		to.Scheme = "https"
	}
	return &fault.AnswerError{Redirects: true, What: "redirects to " + secret.URL(to.String()),
		Hint: "if that is where the server lives, set it as url"}
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && Port(a) == Port(b)
}

func Port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// mostSent is how often a request is sent: once more with another token, and once more where that
// is bound to a key and its proof has to hold something of the server's.
const mostSent = 3

// errorWithin bounds the wait for the end of a body that reports an error: some have fewer bytes than they say.
const errorWithin = time.Second

// ErrorBody returns what comes of a body that reports an error, or nothing. It may close it.
func ErrorBody(body io.ReadCloser) []byte {
	late := time.AfterFunc(errorWithin, func() { _ = body.Close() })
	defer late.Stop()
	text, _ := io.ReadAll(io.LimitReader(body, MaxErrorBody)) // what came counts
	return text
}

// HasOther reports whether there is another token now than that of a request.
func (s *HTTP) HasOther(req *http.Request) bool {
	if s.Tokens == nil {
		return false
	}
	token, err := s.Tokens.Authorize(req.Clone(req.Context()))
	return err == nil && !strings.HasSuffix(req.Header.Get("Authorization"), " "+token)
}

type keepsToken struct{}

// KeepToken returns the context of a request that does not renew the token when it is refused with HTTP 401.
func KeepToken(ctx context.Context) context.Context {
	return context.WithValue(ctx, keepsToken{}, true)
}

// originTransport adds the server's headers and token to requests to the server's origin, and to no
// other. A request that was refused for its token was not acted upon, and is sent again if there is
// another one; likewise one that was refused for the order of Accept.
type originTransport struct{ server *HTTP }

func (t *originTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !sameOrigin(req.URL, t.server.URL) {
		return nil, t.server.redirected(*req.URL)
	}
	body := req.Body
	for sent := 1; ; sent++ {
		resp, token, err := t.send(req, body)
		if err != nil || req.Body != nil && req.GetBody == nil || sent == mostSent {
			return resp, err
		}
		turned := resp.StatusCode == http.StatusNotAcceptable && !t.server.streamFirst.Swap(true)
		if !turned && (token == "" ||
			resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden ||
			resp.StatusCode == http.StatusUnauthorized && req.Context().Value(keepsToken{}) != nil ||
			!t.server.Tokens.Refused(req, token, resp.StatusCode, resp.Header)) {
			return resp, nil
		}
		_ = ErrorBody(resp.Body)
		_ = resp.Body.Close()
		if req.Body != nil {
			if body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// send sends req with that body, and the token that there is now.
func (t *originTransport) send(req *http.Request, body io.ReadCloser) (resp *http.Response, token string, err error) {
	req = req.Clone(req.Context())
	req.Body = body
	if req.Method == http.MethodPost && t.server.streamFirst.Load() {
		req.Header.Set("Accept", "text/event-stream, application/json")
	}
	for name, value := range t.server.headers {
		if http.CanonicalHeaderKey(name) == "Host" {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	if t.server.Tokens != nil {
		if token, err = t.server.Tokens.Authorize(req); err != nil {
			if body != nil {
				_ = body.Close()
			}
			return nil, "", &fault.TokenError{Err: err}
		}
	}
	resp, err = t.server.Pool.RoundTrip(req)
	if err == nil && !slices.Contains([]string{"", "identity"}, strings.ToLower(resp.Header.Get("Content-Encoding"))) {
		_ = resp.Body.Close()
		return nil, token, &fault.AnswerError{Hint: "set the server to gzip, or to none",
			What: fmt.Sprintf("answers with the Content-Encoding %q", resp.Header.Get("Content-Encoding"))}
	}
	return resp, token, err
}

// IsEventStream reports whether a response is a stream of server-sent events.
func IsEventStream(resp *http.Response) bool { return MediaType(resp) == "text/event-stream" }

// MediaType is a response's content type without parameters.
func MediaType(resp *http.Response) string {
	t, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// RetryAfter reads the Retry-After header: seconds, or a date.
func RetryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if n, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(time.Until(at).Round(time.Second), 0)
	}
	return 0
}
