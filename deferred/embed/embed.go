// Package embed finds tools by meaning: by the vectors that an OpenAI-compatible embeddings endpoint gives texts. It is
// an option beside deferred/search, which fuses its order in and does without where the endpoint does not answer.
//
// Each tool's vector is asked for once, in the background, and kept on the disk under a name made of model, schema
// digest and text, for a month. Questions are asked for as they come. Names, descriptions and questions go to the
// endpoint, and nothing else does.
package embed

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
)

// Config says where vectors come from. Its maker checks it.
type Config struct {
	URL   string // of the endpoint; "/embeddings" is added where it does not end so
	Model string
	Key   string // sent as a bearer token; empty: none. It appears in no error and no note
	Dir   string // where vectors are kept; empty: in memory alone
	// Timeout bounds a question; default 300 ms. A batch of tools may take thirty seconds.
	Timeout time.Duration
	// Rest is the time after a failure in which the endpoint is not asked; default 10 s.
	Rest time.Duration
}

const (
	defaultTimeout = 300 * time.Millisecond
	defaultRest    = 10 * time.Second
	batchTimeout   = 30 * time.Second
	batchSize      = 64
	maxText        = 2000 // bytes of a text that are asked for
)

// Store holds the vectors of all tools. Its methods are safe for concurrent use. Close it.
type Store struct {
	config Config
	client *http.Client // it follows no redirects: they would carry the key elsewhere
	stop   context.CancelFunc
	done   chan struct{}
	wake   chan struct{} // holds one

	mu      sync.RWMutex
	tools   map[string]*tool // by ID
	servers map[string][]string
	pending []string // IDs without a vector, in the order in which they came
	resting time.Time
}

// tool is one tool's text and, once it is there, its vector, of length one.
type tool struct {
	id, key, text string
	vector        []float32
}

// New starts a store, which works until ctx ends or it is closed. It asks for nothing before Put.
func New(ctx context.Context, c Config) *Store {
	if u, err := url.Parse(c.URL); err == nil && !strings.HasSuffix(u.Path, "/embeddings") {
		c.URL = u.JoinPath("embeddings").String()
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.Rest <= 0 {
		c.Rest = defaultRest
	}
	ctx, stop := context.WithCancel(ctx)
	s := &Store{
		config: c, stop: stop, done: make(chan struct{}), wake: make(chan struct{}, 1),
		tools: make(map[string]*tool), servers: make(map[string][]string),
		client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
	}
	go s.work(ctx)
	return s
}

// Close stops asking and returns when nothing is under way.
func (s *Store) Close() {
	s.stop()
	<-s.done
	s.client.CloseIdleConnections()
}

// Put replaces the tools of a server. Vectors that are not on the disk are asked for in the background.
func (s *Store) Put(server search.Server, docs []search.Document) {
	tools := make([]*tool, 0, len(docs))
	for i := range docs {
		tools = append(tools, s.tool(&server, &docs[i]))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(server.Name)
	for _, t := range tools {
		if s.tools[t.id] == nil {
			s.servers[server.Name] = append(s.servers[server.Name], t.id)
		}
		s.tools[t.id] = t
		if t.vector == nil {
			s.pending = append(s.pending, t.id)
		}
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Remove forgets the tools of a server; what is on the disk stays for when it comes back.
func (s *Store) Remove(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(server)
}

func (s *Store) remove(server string) {
	for _, id := range s.servers[server] {
		delete(s.tools, id)
	}
	delete(s.servers, server)
	s.pending = slices.DeleteFunc(s.pending, func(id string) bool { return s.tools[id] == nil })
}

// tool returns a document's text for the endpoint, with its vector if that is on the disk.
func (s *Store) tool(server *search.Server, d *search.Document) *tool {
	text := cmp.Or(server.Title, server.Name) + ": " +
		strings.Join(strings.FieldsFunc(d.Name, func(r rune) bool { return r == '_' || r == '-' || r == '.' }), " ")
	for _, more := range []string{d.Title, d.Hint, d.Description} {
		if more != "" {
			text += ". " + more
		}
	}
	text = cut(text)
	sum := sha256.Sum256([]byte(s.config.Model + "\x00" + d.Digest + "\x00" + text))
	t := &tool{id: d.ID, key: hex.EncodeToString(sum[:]), text: text}
	t.vector = s.load(t.key)
	return t
}

func cut(text string) string {
	if len(text) > maxText {
		text = text[:maxText]
	}
	return strings.ToValidUTF8(text, "")
}

// work gets the pending vectors until ctx ends.
func (s *Store) work(ctx context.Context) {
	defer close(s.done)
	s.sweep(ctx)
	for {
		batch := s.batch()
		if len(batch) == 0 {
			select {
			case <-s.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		if err := s.fill(ctx, batch); err != nil {
			rest := time.NewTimer(s.config.Rest)
			select {
			case <-rest.C:
			case <-ctx.Done():
				rest.Stop()
				return
			}
		}
	}
}

// batch returns the next tools to ask for; none if every tool has its vector.
func (s *Store) batch() []*tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var batch []*tool
	s.pending = slices.DeleteFunc(s.pending, func(id string) bool {
		t := s.tools[id]
		return t == nil || t.vector != nil
	})
	for _, id := range s.pending[:min(len(s.pending), batchSize)] {
		batch = append(batch, s.tools[id])
	}
	return batch
}

// fill gets the vectors of a batch. After an error they are still pending.
func (s *Store) fill(ctx context.Context, batch []*tool) error {
	texts := make([]string, len(batch))
	for i, t := range batch {
		texts[i] = t.text
	}
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	vectors, err := s.ask(ctx, texts)
	if err != nil {
		return err
	}
	for i, t := range batch {
		s.save(t.key, vectors[i])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, t := range batch {
		t.vector = vectors[i]
	}
	return nil
}

// Near returns the IDs of at most n tools nearest in meaning to text, the nearest first. It fails
// if the endpoint does not answer in time, and then at once until it has rested. within says what
// the asker may find; nil: all.
func (s *Store) Near(ctx context.Context, text string, n int, within func(id string) bool) ([]string, error) {
	v, err := s.question(ctx, cut(text))
	if err != nil {
		return nil, err
	}
	type near struct {
		id string
		by float32
	}
	s.mu.RLock()
	all := make([]near, 0, len(s.tools))
	for id, t := range s.tools {
		if len(t.vector) == len(v) {
			all = append(all, near{id, dot(t.vector, v)})
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(all, func(a, b near) int {
		return cmp.Or(cmp.Compare(b.by, a.by), strings.Compare(a.id, b.id))
	})
	var ids []string
	for _, c := range all {
		if len(ids) == n {
			break
		}
		if within == nil || within(c.id) {
			ids = append(ids, c.id)
		}
	}
	return ids, nil
}

// question returns the vector of a question.
func (s *Store) question(ctx context.Context, text string) ([]float32, error) {
	s.mu.RLock()
	resting := time.Now().Before(s.resting)
	s.mu.RUnlock()
	if resting {
		return nil, errors.New("embeddings: the endpoint failed a moment ago: it is asked again later")
	}
	asking, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	vectors, err := s.ask(asking, []string{text})
	if err != nil {
		if ctx.Err() == nil { // not the asker's doing
			s.mu.Lock()
			s.resting = time.Now().Add(s.config.Rest)
			s.mu.Unlock()
		}
		return nil, err
	}
	return vectors[0], nil
}

func dot(a, b []float32) float32 {
	var sum float32
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
