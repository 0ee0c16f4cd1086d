package upstream

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
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/redact"
)

const (
	maxErrorBody    = 64 << 10 // bytes read of a body that reports an error
	maxIdlePerHost  = 64
	dialTimeout     = 10 * time.Second
	cancelPatience  = 5 * time.Second // for a notification that nobody waits for
	sdkCloseTimeout = 3 * time.Second
)

// httpServer is how one server is reached over HTTP: its URL, and the connections to it, which outlive sessions.
type httpServer struct {
	url     *url.URL
	headers map[string]string
	pool    *http.Transport
	account *budget.Account // of large responses
	flights sync.WaitGroup  // calls; they may outlive the session that they began on
}

func newHTTPServer(cfg ServerConfig, account *budget.Account) (*httpServer, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("use url %q: not an http or https URL", redact.URL(cfg.URL))
	}
	return &httpServer{url: u, headers: cfg.Headers, account: account, pool: &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    dialTimeout,
		ExpectContinueTimeout:  time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           maxIdlePerHost,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}}, nil
}

// client returns a client whose requests travel over rt and carry the server's headers.
func (s *httpServer) client(rt http.RoundTripper) *http.Client {
	return &http.Client{Transport: &originTransport{server: s, next: rt}, CheckRedirect: s.checkRedirect}
}

// checkRedirect follows redirects only where they stay with the same origin and keep the method: elsewhere they would
// carry a call's content, and the server's credentials, to somebody whom the operator has not named.
func (s *httpServer) checkRedirect(req *http.Request, via []*http.Request) error {
	if !sameOrigin(req.URL, s.url) || req.Method != via[0].Method || len(via) >= 5 {
		return &fault.RedirectError{Target: redact.URL(req.URL.String())}
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// originTransport adds the server's headers to requests to the server's origin, and to no other.
type originTransport struct {
	server *httpServer
	next   http.RoundTripper
}

func (t *originTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !sameOrigin(req.URL, t.server.url) {
		return nil, &fault.RedirectError{Target: redact.URL(req.URL.String())}
	}
	req = req.Clone(req.Context())
	for name, value := range t.server.headers {
		if http.CanonicalHeaderKey(name) == "Host" {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	return t.next.RoundTrip(req)
}

// controlTransport carries what is not a call: the SDK's requests, notifications, listening. It can end them all, it
// bounds what they read, it gives up on server/discover after patience, and it notes how the last one was answered,
// because the SDK's errors do not tell.
type controlTransport struct {
	next     http.RoundTripper
	patience time.Duration

	unanswered atomic.Bool // server/discover was, in time
	limit      int         // bytes of one response

	mu      sync.Mutex
	closed  bool
	number  int
	flights map[int]context.CancelFunc
	last    httpAnswer
	large   *oversize // nil until a response was too large
	said    *declared // nil once nothing more is to be noted
}

// httpAnswer is how a request was answered, as far as it explains a failure.
type httpAnswer struct {
	status int // 0: not at all
	media  string
	retry  time.Duration
}

// foreign reports whether the answer is a success that is no MCP: a web page, most often.
func (a httpAnswer) foreign() bool {
	return a.status == http.StatusOK && a.media != "application/json" && a.media != "text/event-stream"
}

func newControlTransport(next http.RoundTripper, patience time.Duration, limit int) *controlTransport {
	return &controlTransport{next: next, patience: patience, limit: limit, flights: make(map[int]context.CancelFunc), said: &declared{}}
}

func (t *controlTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	land, ok := t.takeOff(cancel)
	if !ok {
		cancel()
		return nil, errClosed
	}
	discover := req.Header.Get("Mcp-Method") == methodDiscover
	if discover {
		timer := time.AfterFunc(t.patience, func() {
			t.unanswered.Store(true)
			cancel()
		})
		defer timer.Stop()
	}
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	var answer httpAnswer
	if req.Method == http.MethodPost { // what is answered to the end of a session that failed does not explain the failure
		answer = t.note(resp)
	}
	if err != nil {
		land()
		return nil, err
	}
	if discover && answer.foreign() {
		resp.StatusCode = http.StatusBadRequest // the SDK would not go on to initialize
	}
	left := int64(t.limit)
	if req.Method == http.MethodGet || req.Header.Get("Mcp-Method") == methodListen {
		left = math.MaxInt64 // each event is bounded by who reads it; the stream may last for days
	}
	if said := t.listening(); said != nil && req.Method == http.MethodPost {
		resp.Body = overhear(resp, said)
	}
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: left, onClose: land, tooLarge: t.tooLarge}
	return resp, nil
}

// listening is what notes the capabilities of the server; nil once the session is established.
func (t *controlTransport) listening() *declared {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said
}

// settle ends the noting, and returns what was noted.
func (t *controlTransport) settle() *declared {
	t.mu.Lock()
	defer t.mu.Unlock()
	said := t.said
	t.said = nil
	return said
}

func (t *controlTransport) takeOff(cancel context.CancelFunc) (land func(), ok bool) {
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
func (t *controlTransport) note(resp *http.Response) httpAnswer {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = httpAnswer{}
	if resp != nil {
		t.last = httpAnswer{status: resp.StatusCode, media: mediaType(resp), retry: retryAfter(resp.Header)}
	}
	return t.last
}

// lastAnswer is how the last message was answered.
func (t *controlTransport) lastAnswer() httpAnswer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// tooLarge notes that a response is over the limit, and returns the error that it is.
func (t *controlTransport) tooLarge() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.large = &oversize{limit: t.limit}
	return t.large
}

// oversize is not nil if a response was too large.
func (t *controlTransport) oversize() *oversize {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.large
}

// abort ends every request under way and refuses further ones.
func (t *controlTransport) abort() {
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

// closeSDK closes the SDK's session, which may want to say goodbye to a server that does not listen; after a while that
// is cut short by abort.
func closeSDK(s *mcp.ClientSession, kill <-chan struct{}, abort func()) {
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

// isEventStream reports whether a response is a stream of server-sent events.
func isEventStream(resp *http.Response) bool { return mediaType(resp) == "text/event-stream" }

// mediaType is a response's content type without parameters.
func mediaType(resp *http.Response) string {
	t, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// retryAfter reads the Retry-After header: seconds, or a date.
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if n, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(time.Until(at).Round(time.Second), 0)
	}
	return 0
}
