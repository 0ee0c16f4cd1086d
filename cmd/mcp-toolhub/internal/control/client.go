package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
)

// Client talks to the API of a running hub, from another process.
type Client struct {
	notice notice
	client *http.Client
}

// ErrNotFound is returned for what the hub does not know.
var ErrNotFound = errors.New("not found")

// The time that Find waits for a hub, and for one whose process is not visible: it may run in a container of this machine.
const (
	answersWithin       = 5 * time.Second
	unseenAnswersWithin = 500 * time.Millisecond
)

// Find returns the hubs that run with the state directory, the oldest first. It removes the notices of hubs that have died.
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
	slices.SortFunc(all, func(a, b *Client) int { return a.notice.Started.Compare(b.notice.Started) })
	return all, nil
}

// look returns the client of the hub that left the notice; nil where the hub does not answer. It removes the notice of a dead one.
func look(ctx context.Context, file string) *Client {
	text, err := os.ReadFile(file)
	h := &Client{client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	if err != nil || json.Unmarshal(text, &h.notice) != nil {
		return nil
	}
	within, unseen := answersWithin, ended(h.notice.PID)
	if unseen {
		within = unseenAnswersWithin
	}
	asking, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if _, err = h.Approvals(asking); err == nil {
		return h
	}
	here := h.notice.Host == "" || h.notice.Host == hostname()
	if here && ctx.Err() == nil && (asking.Err() == nil || unseen) { // refused, or another program answered
		_ = os.Remove(file)
	}
	return nil
}

// ended reports whether there is no process pid any more. On Windows it never knows.
func ended(pid int) bool {
	p, err := os.FindProcess(pid)
	return err != nil || errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
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

// Grants returns the remembered answers that the hub knows.
func (c *Client) Grants(ctx context.Context) ([]Grant, error) {
	return ask[[]Grant](ctx, c, http.MethodGet, "/grants", nil)
}

// Revoke makes the hub forget an answer.
func (c *Client) Revoke(ctx context.Context, id string) error {
	_, err := ask[struct{}](ctx, c, http.MethodDelete, "/grants/"+url.PathEscape(id), nil)
	return err
}

// Watch calls take with the open approvals, then with each change, until ctx ends or the hub does.
func (c *Client) Watch(ctx context.Context, take func(approval.Event)) error {
	resp, err := c.send(ctx, http.MethodGet, "/approvals/watch", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	dec := json.NewDecoder(resp.Body)
	for {
		var e approval.Event
		if err := dec.Decode(&e); err != nil {
			if ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			return fmt.Errorf("watch approvals: %w", err)
		}
		take(e)
	}
}

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
	req, err := http.NewRequestWithContext(ctx, method, c.notice.URL+path, bytes.NewReader(text))
	if err != nil {
		return nil, errors.New("ask the hub: its notice in the state directory is broken")
	}
	req.Header.Set("Authorization", "Bearer "+c.notice.Token)
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the hub: %w", err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	var said struct {
		Error string `json:"error"`
	}
	_ = json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&said)
	if resp.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, said.Error)
	}
	return nil, errors.New(said.Error)
}
