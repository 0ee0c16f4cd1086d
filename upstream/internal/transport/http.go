package transport

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

const (
	MaxErrorBody    = 64 << 10 // bytes read of a body that reports an error
	maxIdlePerHost  = 64
	maxIdleTime     = 90 * time.Second
	maxHead         = 256 << 10 // bytes of a response's head
	dialTimeout     = 10 * time.Second
	CancelPatience  = 5 * time.Second // for a notification that nobody waits for
	sdkCloseTimeout = 3 * time.Second
)

// Requests of 2026-07-28, as the Mcp-Method header names them.
const (
	requestDiscover = "server/discover"
	requestListen   = "subscriptions/listen"
)

// HTTP reaches one server over HTTP. Its connections outlive sessions.
type HTTP struct {
	URL     *url.URL
	headers map[string]string
	Pool    *http.Transport
	Memory  *budget.Share  // for large responses
	Tokens  Tokens         // nil where the headers are all
	Flights sync.WaitGroup // calls; they may outlive the session that they began on
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

// Close closes idle connections.
func (s *HTTP) Close() { s.Pool.CloseIdleConnections() }

// Client returns a client whose requests travel over rt and carry the server's headers.
func (s *HTTP) Client(rt http.RoundTripper) *http.Client {
	return &http.Client{Transport: &originTransport{server: s, next: rt}, CheckRedirect: s.checkRedirect}
}

// checkRedirect follows redirects only to the same origin, with the same method, and not out of the
// resource that an access token is for. Others would carry a call's content, and the server's
// credentials, to somebody whom the operator has not named.
func (s *HTTP) checkRedirect(req *http.Request, via []*http.Request) error {
	if !sameOrigin(req.URL, s.URL) || req.Method != via[0].Method || len(via) >= 5 ||
		s.Tokens != nil && !s.Tokens.Covers(req.URL) {
		return &fault.RedirectError{Target: secret.URL(req.URL.String())}
	}
	return nil
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

// originTransport adds the server's headers and token to requests to the server's origin, and to no
// other. A request that was refused for its token was not acted upon, and is sent again if there is
// another one.
type originTransport struct {
	server *HTTP
	next   http.RoundTripper
}

func (t *originTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !sameOrigin(req.URL, t.server.URL) {
		return nil, &fault.RedirectError{Target: secret.URL(req.URL.String())}
	}
	body := req.Body
	for sent := 1; ; sent++ {
		resp, token, err := t.send(req, body)
		if err != nil || token == "" ||
			resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden ||
			req.Body != nil && req.GetBody == nil || sent == mostSent ||
			!t.server.Tokens.Refused(req, token, resp.StatusCode, resp.Header) {
			return resp, err
		}
		_, _ = io.CopyN(io.Discard, resp.Body, MaxErrorBody)
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
	t.server.dress(req)
	if t.server.Tokens != nil {
		if token, err = t.server.Tokens.Authorize(req); err != nil {
			if body != nil {
				_ = body.Close()
			}
			return nil, "", &fault.TokenError{Err: err}
		}
	}
	resp, err = t.next.RoundTrip(req)
	return resp, token, err
}

// dress adds the server's headers.
func (s *HTTP) dress(req *http.Request) {
	for name, value := range s.headers {
		if http.CanonicalHeaderKey(name) == "Host" {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
}

// Control is the http.RoundTripper of all requests that are no calls: those of the SDK,
// notifications, standing streams. It can end them all and bounds what they read. It gives up on
// server/discover after patience, and remembers how the last request was answered, because the
// SDK's errors do not say that.
type Control struct {
	next     http.RoundTripper
	patience time.Duration

	Unanswered atomic.Bool // server/discover was, in time
	limit      int         // bytes of one response

	mu      sync.Mutex
	closed  bool
	number  int
	flights map[int]context.CancelFunc
	last    HTTPResponse
	large   *Oversize // nil until a response was too large
	said    *Declared // nil once nothing more is to be noted
}

// HTTPResponse says how a request was answered, as far as that explains a failure.
type HTTPResponse struct {
	Status int // 0: not at all
	Media  string
	Retry  time.Duration
}

// Foreign reports whether the answer is a success but no MCP, such as a web page.
func (a HTTPResponse) Foreign() bool {
	return a.Status == http.StatusOK && a.Media != "application/json" && a.Media != "text/event-stream"
}

func NewControl(next http.RoundTripper, patience time.Duration, limit int) *Control {
	return &Control{next: next, patience: patience, limit: limit, flights: make(map[int]context.CancelFunc),
		said: &Declared{}}
}

func (t *Control) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	land, ok := t.takeOff(cancel)
	if !ok {
		cancel()
		return nil, ErrClosed
	}
	discover := req.Header.Get("Mcp-Method") == requestDiscover
	if discover {
		timer := time.AfterFunc(t.patience, func() {
			t.Unanswered.Store(true)
			cancel()
		})
		defer timer.Stop()
	}
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	var answer HTTPResponse
	// what is answered to the end of a session that failed does not explain the failure
	if req.Method == http.MethodPost {
		answer = t.note(resp)
	}
	if err != nil {
		land()
		return nil, err
	}
	if discover && answer.Foreign() {
		resp.StatusCode = http.StatusBadRequest // the SDK would not go on to initialize
	}
	left := int64(t.limit)
	if req.Method == http.MethodGet || req.Header.Get("Mcp-Method") == requestListen {
		left = math.MaxInt64 // each event is bounded by who reads it; the stream may last for days
	}
	if said := t.Declared(); said != nil && req.Method == http.MethodPost {
		resp.Body = overhear(resp, said)
	}
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: left, onClose: land, tooLarge: t.tooLarge}
	return resp, nil
}

// Declared returns what notes the capabilities of the server; nil once the session is established.
func (t *Control) Declared() *Declared {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said
}

// Settle stops noting capabilities, and returns those that were noted.
func (t *Control) Settle() *Declared {
	t.mu.Lock()
	defer t.mu.Unlock()
	said := t.said
	t.said = nil
	return said
}

func (t *Control) takeOff(cancel context.CancelFunc) (land func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, false
	}
	t.number++
	n := t.number
	t.flights[n] = cancel
	return func() {
		cancel()
		t.mu.Lock()
		delete(t.flights, n)
		t.mu.Unlock()
	}, true
}

// note remembers how a request was answered.
func (t *Control) note(resp *http.Response) HTTPResponse {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = HTTPResponse{}
	if resp != nil {
		t.last = HTTPResponse{Status: resp.StatusCode, Media: MediaType(resp), Retry: RetryAfter(resp.Header)}
	}
	return t.last
}

// LastAnswer says how the last message was answered.
func (t *Control) LastAnswer() HTTPResponse {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// tooLarge notes that a response is over the limit, and returns the error that it is.
func (t *Control) tooLarge() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.large = &Oversize{Limit: t.limit}
	return t.large
}

// Oversize returns the response that was too large, or nil.
func (t *Control) Oversize() *Oversize {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.large
}

// Abort ends every request under way and refuses further ones.
func (t *Control) Abort() {
	t.mu.Lock()
	t.closed = true
	flights := make([]context.CancelFunc, 0, len(t.flights))
	for _, cancel := range t.flights {
		flights = append(flights, cancel)
	}
	t.mu.Unlock()
	for _, cancel := range flights {
		cancel()
	}
}

// boundedBody is a body that fails once more than left bytes were read.
type boundedBody struct {
	io.ReadCloser
	left     int64
	tooLarge func() error // the error that it fails with
	onClose  func()
	once     sync.Once
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, b.tooLarge()
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return n, b.tooLarge()
	}
	return n, err
}

func (b *boundedBody) Close() error {
	err := b.ReadCloser.Close()
	if b.onClose != nil {
		b.once.Do(b.onClose)
	}
	return err
}

// CloseSDK closes the SDK's session. The SDK may want to say goodbye to a server that does not
// listen: after a while, or once kill is closed, abort cuts that short.
func CloseSDK(s *mcp.ClientSession, kill <-chan struct{}, abort func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Close() // what cannot be said to the server is not worth an error
	}()
	timer := time.NewTimer(sdkCloseTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-kill:
	case <-timer.C:
	}
	abort()
	<-done
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
