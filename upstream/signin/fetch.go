package signin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/oauth2"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/ipaddr"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
)

const (
	maxBody      = 256 << 10        // bytes of one answer; the largest metadata seen had 8 KiB
	answerTime   = 15 * time.Second // for one request and its answer
	maxRedirects = 3
)

// newClient returns a client for requests about signing in to a server. Times and bodies are
// bounded, and redirects stay at their origin. Unless the server is near, nobody can point the
// client at addresses of this network.
func newClient(near bool) *http.Client {
	pool, _ := http.DefaultTransport.(*http.Transport)
	pool = pool.Clone()
	pool.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialer := &net.Dialer{Timeout: answerTime}
		if !near && !isProxy(pool, address) {
			dialer.Control = refuseInside
		}
		return dialer.DialContext(ctx, network, address)
	}
	return &http.Client{Transport: bounded{pool}, Timeout: answerTime,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.Method != http.MethodGet || via[0].Method != http.MethodGet {
				return notFollowed(req)
			}
			return sameOrigin(req, via)
		}}
}

// sameOrigin follows a redirect within the origin of the first request.
func sameOrigin(req *http.Request, via []*http.Request) error {
	if first := via[0]; req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host ||
		len(via) > maxRedirects {
		return notFollowed(req)
	}
	return nil
}

func notFollowed(req *http.Request) error {
	return fmt.Errorf("it redirects to %s, which is not followed", secret.URL(req.URL.String()))
}

// refuseInside is a net.Dialer's Control that refuses addresses of this network.
func refuseInside(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || isInside(at.Addr()) {
		return fmt.Errorf("%s is an address of this network, and the server is not in it: refused", address)
	}
	return nil
}

// isProxy reports whether address is that of a proxy of the environment, which may stand in this
// network. What it reaches is its own matter; net/http goes around it to reach this machine.
func isProxy(pool *http.Transport, address string) bool {
	ports := map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}
	for _, scheme := range []string{"http", "https"} {
		proxy, err := pool.Proxy(&http.Request{URL: &url.URL{Scheme: scheme, Host: "proxy.invalid"}})
		if err == nil && proxy != nil &&
			net.JoinHostPort(proxy.Hostname(), cmp.Or(proxy.Port(), ports[proxy.Scheme])) == address {
			return true
		}
	}
	return false
}

// isInside reports whether ip is not one of the public Internet, or an IPv6 address that stands for one of IPv4.
func isInside(ip netip.Addr) bool {
	ip = ip.Unmap()
	return ipaddr.IsInside(ip) || ipaddr.Embedded(ip) != ip
}

// bounded fails answers of more than maxBody bytes.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err == nil {
		resp.Body = &boundedBody{resp.Body, maxBody}
	}
	return resp, err
}

type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("the answer is over %d KiB", maxBody>>10)
	}
	return n, err
}

// errAbsent: there is no such document. errSilent: a server hangs.
var (
	errAbsent = errors.New("there is none")
	errSilent = errors.New("did not answer in time")
)

// getJSON reads the JSON document at address. The error is errAbsent where the server says that it has none.
func getJSON(ctx context.Context, client *http.Client, address string, into any) error {
	if err := checkAddress(address); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return shown(err)
	}
	defer resp.Body.Close()
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode >= 400 && resp.StatusCode < 500:
		return fmt.Errorf("%s answered with HTTP status %d: %w", secret.URL(resp.Request.URL.String()), resp.StatusCode,
			errAbsent)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s answered with HTTP status %d", secret.URL(address), resp.StatusCode)
	case media != "application/json" && !strings.HasSuffix(media, "+json"):
		return fmt.Errorf("%s answered with content type %q instead of JSON", secret.URL(address), shownText(media))
	}
	body, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", secret.URL(address), shown(err))
	}
	return nil
}

// checkAddress refuses what is no https address, on this machine http apart.
func checkAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return fmt.Errorf("%q is no web address", shownText(secret.URL(address)))
	}
	ip, err := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	if u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return fmt.Errorf("%s is not https: tokens would travel for all to read", hidden.Line(secret.URL(address)))
	}
	return nil
}

// shown returns err with texts of others made fit to be shown: short, on one line, and without the
// addresses that net/http puts first, which may hold codes.
func shown(err error) error {
	var said *oauth2.RetrieveError
	var u *url.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &said) && said.ErrorCode != "":
		return &refusal{said.ErrorCode, said.ErrorDescription, isPassing(said.Response.StatusCode)}
	case errors.As(err, &said) && isPassing(said.Response.StatusCode):
		return &unreachedError{fmt.Sprintf("HTTP status %d", said.Response.StatusCode)}
	case errors.As(err, &said):
		return fmt.Errorf("HTTP status %d", said.Response.StatusCode)
	case errors.As(err, &u) && u.Timeout():
		return fmt.Errorf("%s %w", hostOf(u.URL), errSilent)
	case errors.As(err, &u):
		return &unreachedError{hostOf(u.URL) + ": " + shownText(u.Err.Error())}
	}
	return errors.New(shownText(err.Error()))
}

// unreachedError says why there was no answer, or none but that the server is busy or fails.
type unreachedError struct{ text string }

func (e *unreachedError) Error() string { return e.text }

// shownText returns a text of others as it may be shown.
func shownText(text string) string { return hidden.Line(hidden.Cut(text, secret.MaxText)) }

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the server"
	}
	return shownText(u.Host)
}

// isPassing reports whether the status is about this moment, and not about the request.
func isPassing(status int) bool {
	return status >= http.StatusInternalServerError || status == http.StatusRequestTimeout ||
		status == http.StatusTooEarly ||
		status == http.StatusTooManyRequests
}

// refusal is the error of an authorization server.
type refusal struct {
	code, description string
	passes            bool // the same request may succeed later
}

func (e *refusal) Error() string {
	text := shownText(e.code)
	if e.description != "" {
		text += ": " + shownText(e.description)
	}
	return "the authorization server refuses it (" + text + ")"
}

// mayPass reports whether the request that failed with err may succeed later.
func mayPass(err error) bool {
	var said *refusal
	return errors.Is(err, errSilent) || errors.As(err, new(*unreachedError)) || errors.As(err, &said) && said.passes
}

// isRefused reports whether err is the refusal of an authorization server with one of the codes.
func isRefused(err error, codes ...string) bool {
	var e *refusal
	return errors.As(err, &e) && slices.Contains(codes, e.code)
}
