package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
)

// maxPosts bounds the messages under way to one server over SSE.
const maxPosts = 128

// SSE is the wire of the HTTP+SSE transport of protocol 2024-11-05: one GET whose events are the
// server's messages, and one POST for each message to the server. The SDK's transport does not
// serve: it ends the session at an event that it cannot read, and drops messages that came before
// the end of the stream.
type SSE struct {
	client *http.Client
	body   io.ReadCloser
	events *jsonrpc.EventReader
	// the POST of a message; it has no caller, so it ends with the wire
	request func(data []byte) (*http.Request, error)
	end     context.CancelFunc
	slots   chan struct{}

	mu      sync.Mutex
	closed  bool
	posting sync.WaitGroup
}

// DialSSE opens the stream of the server and waits for the endpoint event. ctx bounds only that,
// life the wire, and limit each event.
func DialSSE(ctx, life context.Context, server *HTTP, limit int) (*SSE, error) {
	life, end := context.WithCancel(life)
	stop := context.AfterFunc(ctx, end)
	defer stop()
	w, err := openSSE(life, server, limit)
	if err != nil {
		end()
		return nil, errors.Join(err, ctx.Err())
	}
	w.end = end
	return w, nil
}

func openSSE(life context.Context, server *HTTP, limit int) (*SSE, error) {
	client, target := server.Client(), server.URL
	req, err := http.NewRequestWithContext(life, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	w := &SSE{
		client: client,
		body:   resp.Body,
		events: jsonrpc.NewEventReader(resp.Body, limit, server.Memory),
		slots:  make(chan struct{}, maxPosts),
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, &fault.StatusError{Status: resp.StatusCode}
	}
	for {
		ev, err := w.events.Next()
		if err != nil {
			_ = resp.Body.Close()
			return nil, fmt.Errorf("wait for the endpoint event: %w", err)
		}
		if ev.Name != "endpoint" {
			continue
		}
		endpoint, err := target.Parse(string(ev.Data))
		if err != nil || !sameOrigin(endpoint, target) {
			_ = resp.Body.Close()
			return nil, errors.New("the endpoint event names another origin than the server's url")
		}
		w.request = func(data []byte) (*http.Request, error) {
			return http.NewRequestWithContext(life, http.MethodPost, endpoint.String(), bytes.NewReader(data))
		}
		return w, nil
	}
}

func (w *SSE) Next() (jsonrpc.Received, error) {
	for {
		ev, err := w.events.Next()
		if err != nil {
			return jsonrpc.Received{}, err
		}
		if ev.IsMessage() {
			return ev.Received(), nil
		}
	}
}

func (w *SSE) Post(m Outgoing) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	select {
	case w.slots <- struct{}{}:
	default:
		return errQueueFull
	}
	w.posting.Go(func() {
		defer func() { <-w.slots }()
		if m.Call != nil && !m.Call.Begin() {
			return
		}
		err := w.deliver(m.Data)
		m.Finish(err)
		var status *fault.StatusError
		if errors.As(err, &status) && (status.Status == http.StatusNotFound ||
			status.Status == http.StatusUnauthorized) {
			w.Close() // the server has forgotten the session, or whom it belongs to: only a new one helps
		}
	})
	return nil
}

func (w *SSE) deliver(data []byte) error {
	req, err := w.request(data)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := w.client.Do(req)
	if err != nil {
		return err
	}
	_ = ErrorBody(resp.Body) // so that the connection can be used again
	_ = resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return &fault.StatusError{Status: resp.StatusCode, Header: resp.Header}
	}
	return nil
}

func (w *SSE) Close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.end()
}

func (w *SSE) Release() {
	w.Close()
	_ = w.body.Close()
	w.posting.Wait()
}
