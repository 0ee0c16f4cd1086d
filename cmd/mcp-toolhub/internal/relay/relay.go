// Package relay keeps a client on stdin and stdout while the hub behind it changes.
//
// Example: the hubs of two clients are one process, which the first client has started. When that
// client ends it, the relay of the second client opens the session again at the next hub, and its
// client goes on.
package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Hub is a connection to a hub. After CloseWrite, Read ends when the hub has answered all that was
// written. It ends with the hub, too.
type Hub interface {
	io.Reader
	io.Writer
	CloseWrite() error
}

// Moved is the last line of a hub that ends in good order. Such a hub has answered every request that it has begun.
var Moved = append(jsonrpc.NotificationText("notifications/mcp-toolhub/moved", nil), '\n')

// maxLine bounds a message. The hub has limits of its own, and refuses what is over them.
const maxLine = 1 << 30

// Relay serves one client. One goroutine at a time may call Over; any goroutine may call End.
type Relay struct {
	out io.Writer

	writing sync.Mutex // of what goes to the hub
	hub     Hub        // nil between two hubs
	there   *sync.Cond // hub is not nil, or the relay is over

	mu         sync.Mutex
	gone       bool     // the client has sent its last message
	open       []sent   // requests that nobody has answered, in the order of the wire
	handshake  [][]byte // initialize, and what has set up the session since
	replay     int      // the ids of the relay's own requests
	subscribed map[string][]byte
	level      []byte
}

// sent is a message of the client.
type sent struct {
	id, text []byte
	method   string
}

// New returns the relay for the client on in and out, and begins to read from in.
func New(in io.Reader, out io.Writer) *Relay {
	r := &Relay{out: out, subscribed: make(map[string][]byte)}
	r.there = sync.NewCond(&r.writing)
	go r.readAll(in)
	return r
}

// readAll hands on what the client sends.
func (r *Relay) readAll(in io.Reader) {
	lines := jsonrpc.NewLineReader(in, func() int { return maxLine }, nil)
	for {
		line, err := lines.Next()
		if err != nil {
			r.leave()
			return
		}
		r.writing.Lock()
		for r.hub == nil && !r.isGone() {
			r.there.Wait()
		}
		r.note(line.Text)
		if r.hub != nil {
			_, _ = r.hub.Write(append(line.Text, '\n')) // a hub that has ended is noticed by Over
		}
		r.writing.Unlock()
	}
}

// leave is End for a client that has sent its last message. If it cannot read anything more either,
// it was killed, and the hub of another process is to know. A hub in this process sees it for
// itself.
func (r *Relay) leave() {
	if jsonrpc.IsUnread(r.out) {
		r.mu.Lock()
		r.gone = true
		r.mu.Unlock()
		r.writing.Lock()
		if hub, ok := r.hub.(io.Closer); ok {
			_ = hub.Close() // the hub is to see a broken connection, and no end of what is written
		}
		r.writing.Unlock()
	}
	r.End()
}

// End lets the hub answer what it has, and then ends Over.
func (r *Relay) End() {
	r.mu.Lock()
	r.gone = true
	r.mu.Unlock()
	r.writing.Lock()
	defer r.writing.Unlock()
	if r.hub != nil {
		_ = r.hub.CloseWrite()
	}
	r.there.Broadcast()
}

func (r *Relay) isGone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone
}

// messages calls yield with each message of a line: one, or those of a batch.
func messages(line []byte, yield func(m jsonrpc.Message)) {
	if len(line) == 0 || line[0] != '[' {
		yield(jsonrpc.Read(line))
		return
	}
	_ = rawjson.Elements(line, func(text []byte) bool { yield(jsonrpc.Read(text)); return true })
}

// note remembers what the next hub will have to know of a message.
func (r *Relay) note(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	messages(line, func(m jsonrpc.Message) {
		switch {
		case m.IsRequest():
			r.open = append(r.open, sent{bytes.Clone(m.ID), bytes.Clone(m.Text), m.Method})
		case m.Method == "notifications/cancelled":
			id, _ := rawjson.Get(m.Params, "requestId")
			r.take(id)
		case m.Method == "notifications/initialized" && len(r.handshake) == 1:
			r.handshake = append(r.handshake, bytes.Clone(m.Text))
		}
	})
}

// take removes the request with that id. r.mu is held.
func (r *Relay) take(id []byte) (sent, bool) {
	i := slices.IndexFunc(r.open, func(s sent) bool { return rawjson.Same(s.id, id) })
	if i < 0 {
		return sent{}, false
	}
	s := r.open[i]
	r.open = slices.Delete(r.open, i, i+1)
	return s, true
}

// answered notes which requests a line of the hub answers.
func (r *Relay) answered(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	messages(line, func(m jsonrpc.Message) {
		s, ok := r.take(m.ID)
		if !m.IsResponse() || !ok || m.Error != nil {
			return
		}
		params, _ := rawjson.Get(s.text, "params")
		uri := rawjson.Text(params, "uri")
		switch s.method {
		case "initialize":
			r.handshake = [][]byte{s.text}
		case "logging/setLevel":
			r.level = s.text
		case "resources/subscribe":
			r.subscribed[uri] = s.text
		case "resources/unsubscribe":
			delete(r.subscribed, uri)
		}
	})
}

// say writes a line to the client.
func (r *Relay) say(line []byte) error {
	_, err := r.out.Write(append(line, '\n'))
	return err
}

// Over connects the client to hub until the client has gone (gone is true) or the hub has ended. If
// the client has a session, Over first opens it again at hub. Then it sends the requests that no
// hub has begun. It answers requests that an earlier hub may have begun with an error.
func (r *Relay) Over(ctx context.Context, hub Hub) (gone bool, err error) {
	lines := jsonrpc.NewLineReader(hub, func() int { return maxLine }, nil)
	moved, err := r.begin(hub, lines)
	for err == nil {
		var line jsonrpc.Received
		if line, err = lines.Next(); err != nil {
			break
		}
		if moved = bytes.Equal(line.Text, Moved[:len(Moved)-1]); moved {
			continue
		}
		r.answered(line.Text)
		if err := r.say(line.Text); err != nil {
			return true, fmt.Errorf("write to the client: %w", err)
		}
	}
	r.writing.Lock()
	r.hub = nil
	r.writing.Unlock()
	if r.isGone() || ctx.Err() != nil {
		return true, nil
	}
	return false, r.settle(moved)
}

// begin opens the session at hub, and sends what waits.
func (r *Relay) begin(hub Hub, lines *jsonrpc.LineReader) (moved bool, err error) {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	handshake, waiting := r.handshake, slices.Clone(r.open)
	again := [][]byte{r.level}
	for _, text := range r.subscribed {
		again = append(again, text)
	}
	r.mu.Unlock()
	for i, text := range handshake {
		if i > 0 {
			_, err = hub.Write(append(bytes.Clone(text), '\n'))
		} else {
			err = r.repeat(hub, lines, text)
		}
		if err != nil {
			return false, err
		}
	}
	for _, text := range again {
		if text == nil {
			continue
		}
		if err := r.repeat(hub, lines, text); err != nil {
			return false, err
		}
	}
	for _, s := range waiting {
		if _, err := hub.Write(append(bytes.Clone(s.text), '\n')); err != nil {
			return false, err
		}
	}
	if len(handshake) > 0 { // what was found for the session is not loaded there
		if err := r.say(jsonrpc.NotificationText("notifications/tools/list_changed", nil)); err != nil {
			return false, err
		}
	}
	r.hub = hub
	r.there.Broadcast()
	if r.isGone() {
		err = hub.CloseWrite()
	}
	return false, err
}

// repeat sends a request of the client again, under an id of the relay's, and waits for the answer.
// The client has got its answer before, so this one is dropped.
func (r *Relay) repeat(hub Hub, lines *jsonrpc.LineReader, text []byte) error {
	r.replay++
	id := rawjson.Quote(fmt.Sprint("mcp-toolhub/relay/", r.replay))
	request, err := rawjson.Set(text, "id", id)
	if err == nil {
		_, err = hub.Write(append(request, '\n'))
	}
	for err == nil {
		var line jsonrpc.Received
		if line, err = lines.Next(); err != nil {
			break
		}
		if m := jsonrpc.Read(line.Text); m.IsResponse() && rawjson.Same(m.ID, id) {
			return nil
		}
		err = r.say(line.Text)
	}
	return err
}

// settle answers the requests that the ended hub may have begun. All others wait for the next hub.
func (r *Relay) settle(moved bool) error {
	r.mu.Lock()
	var lost []sent
	if !moved {
		harmless := []string{"initialize", "ping", "server/discover", "tools/list", "resources/list",
			"resources/templates/list", "resources/read",
			"prompts/list", "prompts/get", "completion/complete", "logging/setLevel", "resources/subscribe",
			"resources/unsubscribe", "subscriptions/listen"}
		r.open = slices.DeleteFunc(r.open, func(s sent) bool {
			if slices.Contains(harmless, s.method) {
				return false
			}
			lost = append(lost, s)
			return true
		})
	}
	r.mu.Unlock()
	for _, s := range lost {
		failure := &tool.RPCError{Code: tool.CodeInternalError,
			Message: "the hub that served this client has ended, and the request may have taken " +
				"effect: look before you send it again"}
		if err := r.say(jsonrpc.ErrorText(json.RawMessage(s.id), failure)); err != nil {
			return fmt.Errorf("write to the client: %w", err)
		}
	}
	return nil
}
