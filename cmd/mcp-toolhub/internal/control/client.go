package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/telemetry"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
)

// Client talks to the API of a running hub, from another process.
type Client struct {
	notice notice
	socket string
	client *http.Client
}

// dial connects to the hub at its socket.
func (c *Client) dial(ctx context.Context, _, _ string) (conn net.Conn, err error) {
	d := net.Dialer{Timeout: answersWithin}
	err = atSocket(c.socket, func(path string) (err error) {
		conn, err = d.DialContext(ctx, "unix", path)
		return err
	})
	return conn, err
}

// ErrNotFound is returned for what the hub does not know.
var ErrNotFound = errors.New("not found")

// answersWithin is the time that Find waits for a hub.
const answersWithin = 5 * time.Second

// Find returns the hubs that run with the state directory: first those that serve no client of
// their own, then the oldest. It removes the notices of hubs that have died.
func Find(ctx context.Context, state string) ([]*Client, error) {
	files, err := os.ReadDir(runDir(state))
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("look for running hubs: %w", err)
	}
	found := make([]*Client, len(files))
	var asking sync.WaitGroup
	for i, f := range files {
		if strings.HasSuffix(f.Name(), ".json") {
			asking.Go(func() { found[i] = look(ctx, filepath.Join(runDir(state), f.Name())) })
		}
	}
	asking.Wait()
	all := slices.DeleteFunc(found, func(c *Client) bool { return c == nil })
	slices.SortFunc(all, func(a, b *Client) int {
		if a.Shared() != b.Shared() {
			return map[bool]int{true: -1, false: 1}[a.Shared()]
		}
		return a.notice.Started.Compare(b.notice.Started)
	})
	return all, nil
}

// look returns the client of the hub that left the notice; nil where the hub does not answer. It
// removes the notice of a dead one.
func look(ctx context.Context, file string) *Client {
	text, err := os.ReadFile(file)
	h := &Client{socket: socketOf(file)}
	h.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: h.dial}}
	if err != nil || json.Unmarshal(text, &h.notice) != nil {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	if _, err = h.Approvals(asking); err == nil {
		return h
	}
	// this process has no descriptor left: the hub may run
	full := errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
	socketLeadsNowhere := errors.As(err, new(*net.OpError)) && !full
	if here := h.notice.Host == hostname(); here && asking.Err() == nil && socketLeadsNowhere {
		_, _ = os.Remove(file), os.Remove(h.socket)
	}
	return nil
}

// hostname returns the name of this machine or container, "" where it has none.
func hostname() string {
	name, _ := os.Hostname()
	return name
}

// Approvals returns the open approvals.
func (c *Client) Approvals(ctx context.Context) ([]approval.View, error) {
	return ask[[]approval.View](ctx, c, http.MethodGet, "/approvals", nil)
}

// Approval returns one approval.
func (c *Client) Approval(ctx context.Context, id string) (approval.View, error) {
	return ask[approval.View](ctx, c, http.MethodGet, "/approvals/"+url.PathEscape(id), nil)
}

// Answer settles an approval, and returns it.
func (c *Client) Answer(ctx context.Context, id string, r Reply) (approval.View, error) {
	return ask[approval.View](ctx, c, http.MethodPost, "/approvals/"+url.PathEscape(id), r)
}

// Spans returns how the time of one of the hub's latest calls was spent. The error is ErrNotFound
// where it is none of them.
func (c *Client) Spans(ctx context.Context, id tool.InvocationID) (*telemetry.Spans, error) {
	return ask[*telemetry.Spans](ctx, c, http.MethodGet, "/calls/"+url.PathEscape(string(id))+"/spans", nil)
}

// Report says how the hub is.
func (c *Client) Report(ctx context.Context) (Report, error) {
	r, err := ask[Report](ctx, c, http.MethodGet, "/report", nil)
	r.PID, r.Config, r.Shared, r.Apart = c.notice.PID, c.notice.Config, c.notice.Shared, c.notice.Apart
	return r, err
}

// Surface says where each tool stands for a client that the hub does not know.
func (c *Client) Surface(ctx context.Context, profile string) ([]Tool, error) {
	return ask[[]Tool](ctx, c, http.MethodGet, "/surface?"+url.Values{"profile": {profile}}.Encode(), nil)
}

// Show returns what a command shows of a tool.
func (c *Client) Show(ctx context.Context, profile, name string, asJSON bool) (string, error) {
	query := url.Values{"profile": {profile}, "name": {name}}
	if asJSON {
		query.Set("json", "true")
	}
	return ask[string](ctx, c, http.MethodGet, "/tool?"+query.Encode(), nil)
}

// Decision returns what a command shows of the decision about a call.
func (c *Client) Decision(ctx context.Context, call Call) (string, error) {
	return ask[string](ctx, c, http.MethodPost, "/explain", call)
}

// Restart starts a server anew.
func (c *Client) Restart(ctx context.Context, server string) error {
	_, err := ask[struct{}](ctx, c, http.MethodPost, "/servers/"+url.PathEscape(server)+"/restart", nil)
	return err
}

// Grants returns the remembered answers that the hub knows.
func (c *Client) Grants(ctx context.Context) ([]Grant, error) {
	return ask[[]Grant](ctx, c, http.MethodGet, "/grants", nil)
}

// Revoke makes the hub forget an answer.
func (c *Client) Revoke(ctx context.Context, id string) error {
	_, err := ask[struct{}](ctx, c, http.MethodDelete, "/grants/"+url.PathEscape(id), nil)
	return err
}

// OpenPage returns an address that opens the hub's page once, within a minute.
func (c *Client) OpenPage(ctx context.Context) (string, error) {
	answer, err := ask[map[string]string](ctx, c, http.MethodPost, "/page/invite", nil)
	return answer["url"], err
}

// PageCode returns a code with which the session of the page of that name may answer approvals.
func (c *Client) PageCode(ctx context.Context, session string) (string, error) {
	answer, err := ask[map[string]string](ctx, c, http.MethodPost, "/page/code", map[string]string{"session": session})
	return answer["code"], err
}

// PID is the hub's process.
func (c *Client) PID() int { return c.notice.PID }

// Config is the path of the hub's config.
func (c *Client) Config() string { return c.notice.Config }

// Shared reports whether the hub serves no client of its own, only those that join.
func (c *Client) Shared() bool { return c.notice.Shared }

// Version is that of the hub's program; "" where it does not tell.
func (c *Client) Version() string { return c.notice.Version }

// Launched reports whether start has started the hub.
func (c *Client) Launched() bool { return c.notice.Launched }

// Apart says why the hub serves its own client beside another hub of the config; "" where it does not.
func (c *Client) Apart() string { return c.notice.Apart }

// Stop lets a hub end that serves no client of its own, and waits until its process has.
func (c *Client) Stop(ctx context.Context) error {
	resp, err := c.send(ctx, http.MethodPost, "/stop", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); ctx.Err() != nil {
		return fmt.Errorf("wait for the hub to end: %w", err)
	}
	return nil
}

// Join has a client served by the hub: what is written to the connection is its stdin, what is read
// its stdout. The error says why the hub does not take it in.
func (c *Client) Join(ctx context.Context, w Wish) (*Joined, error) {
	text, _ := json.Marshal(w) // texts alone
	if c.notice.Host != hostname() {
		return nil, errors.New("join the hub: it runs in another container or machine")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://hub"+joinPath, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	conn, err := c.dial(ctx, "", "")
	if err != nil {
		return nil, fmt.Errorf("join the hub: %w", err)
	}
	j := &Joined{UnixConn: conn.(*net.UnixConn), in: bufio.NewReader(conn)}
	_ = conn.SetDeadline(time.Now().Add(answersWithin))
	var resp *http.Response
	if err = req.Write(conn); err == nil {
		resp, err = http.ReadResponse(j.in, req)
	}
	if err == nil && resp.StatusCode != http.StatusSwitchingProtocols {
		err = said(resp)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("join the hub: %w", err), conn.Close())
	}
	j.Note, _ = url.QueryUnescape(resp.Header.Get(noteHeader))
	return j, conn.SetDeadline(time.Time{})
}

// Joined is a connection to a hub that serves a client of this process.
type Joined struct {
	*net.UnixConn
	in *bufio.Reader

	Note string // what this process would have done otherwise; "" for nothing
}

func (j *Joined) Read(p []byte) (int, error) { return j.in.Read(p) }

// ask sends a request and reads the answer.
func ask[T any](ctx context.Context, c *Client, method, path string, body any) (out T, err error) {
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return out, fmt.Errorf("read the hub's answer: %w", err)
	}
	return out, nil
}

func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("ask the hub: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://hub"+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the hub: %w", err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	return nil, said(resp)
}

// said is the error that the hub answers with.
func said(resp *http.Response) error {
	defer resp.Body.Close()
	var body struct {
		Error string `json:"error"`
	}
	_ = json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&body)
	if resp.StatusCode == http.StatusNotFound {
		return fmt.Errorf("%w: %s", ErrNotFound, body.Error)
	}
	return errors.New(body.Error)
}
