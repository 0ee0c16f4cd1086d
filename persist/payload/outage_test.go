package payload

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// hanging is a bucket that does not answer while hang is set, and then keeps objects in memory.
type hanging struct {
	mu      sync.Mutex
	hang    bool
	objects map[string][]byte
}

func (h *hanging) do(ctx context.Context, f func() error) error {
	h.mu.Lock()
	if h.hang {
		h.mu.Unlock()
		<-ctx.Done()
		return ctx.Err()
	}
	defer h.mu.Unlock()
	return f()
}

func (h *hanging) write(ctx context.Context, key string, _ bool, fill func(io.Writer) error) error {
	var b bytes.Buffer
	if err := fill(&b); err != nil {
		return err
	}
	return h.do(ctx, func() error {
		h.objects[key] = b.Bytes()
		return nil
	})
}

func (h *hanging) open(ctx context.Context, key string) (r io.ReadCloser, err error) {
	return r, h.do(ctx, func() error {
		text, ok := h.objects[key]
		if !ok {
			return fs.ErrNotExist
		}
		r = io.NopCloser(bytes.NewReader(text))
		return nil
	})
}

func (h *hanging) list(ctx context.Context, _ string, _ func(object) error) error {
	return h.do(ctx, func() error { return nil })
}

func (h *hanging) remove(context.Context, string) error { return nil }
func (h *hanging) lock() (unlock func(), err error)     { return func() {}, nil }
func (h *hanging) String() string                       { return "a bucket" }
func (h *hanging) close() error                         { return nil }

func (h *hanging) set(hang bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hang = hang
}

// TestABucketThatHangs has 20 results come while a bucket hangs: one waits for it, the others are refused at once, and it is tried again
// soon. Readers wait for a bounded time.
func TestABucketThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		at := &hanging{hang: true, objects: make(map[string][]byte)}
		s := newStore(t.Context(), Config{URL: "x", MaxAge: time.Hour, MaxBytes: 1 << 30}, at, nil, nil, slog.New(slog.DiscardHandler))
		defer s.Close()
		e := Entry{ID: "res_a", Created: time.Now()}
		begin := time.Now()
		raw := make([]byte, 3<<20)
		if _, err := s.Put(e, raw); err == nil || time.Since(begin) != patience+3*time.Second {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
		for range 3 {
			begin = time.Now()
			if _, err := s.Put(e, raw); err == nil || time.Since(begin) != 0 {
				t.Errorf("after %s: %v", time.Since(begin), err)
			}
		}
		if problems := s.Problems(); len(problems) != 1 || !strings.Contains(problems[0], "a bucket can be reached") {
			t.Errorf("problems %q", problems)
		}
		time.Sleep(restFor)
		begin = time.Now()
		var waited, refused int
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				_, err := s.Put(e, raw)
				mu.Lock()
				defer mu.Unlock()
				switch took := time.Since(begin); {
				case err == nil:
					t.Error("stored")
				case took == 0:
					refused++
				case took == patience+3*time.Second:
					waited++
				}
			})
		}
		all.Wait()
		if waited != 1 || refused != 19 {
			t.Errorf("%d have waited, %d were refused", waited, refused)
		}
		begin = time.Now()
		if _, err := s.Entry(e.ID); err == nil || time.Since(begin) != patience {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
		at.set(false)
		time.Sleep(restFor)
		kept, err := s.Put(e, raw)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Read(kept, func([]byte) error { return nil }); err != nil || len(s.Problems()) != 0 {
			t.Errorf("%v, problems %q", err, s.Problems())
		}
	})
}
