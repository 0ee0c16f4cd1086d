package embed_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/deferred/embed"
	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
)

// endpoint is an embeddings endpoint whose vectors have an axis for each subject that it knows.
type endpoint struct {
	*httptest.Server
	texts  atomic.Int64 // asked for so far
	answer atomic.Pointer[http.HandlerFunc]
}

const secret = "sk-very-secret"

func serve(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if special := e.answer.Load(); special != nil {
			(*special)(w, r)
			return
		}
		var body struct {
			Model string   `json:"model"`
			Input []string `json:"input"`
		}
		if r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer "+secret ||
			json.NewDecoder(r.Body).Decode(&body) != nil || body.Model != "subjects" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		type item struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		var data []item
		for i, text := range body.Input {
			e.texts.Add(1)
			v := []float32{0, 0, 0, 0.01}
			for axis, words := range []string{"weather rain umbrella storm", "invoice money owe", "picture paint fox"} {
				for word := range strings.FieldsSeq(words) {
					if strings.Contains(strings.ToLower(text), word) {
						v[axis]++
					}
				}
			}
			data = append(data, item{i, v})
		}
		slices.Reverse(data) // the order is the indexes', not the answer's
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) store(t *testing.T, dir string, timeout time.Duration) *embed.Store {
	t.Helper()
	s := embed.New(t.Context(), embed.Config{URL: e.URL + "/v1", Model: "subjects", Key: secret, Dir: dir, Timeout: timeout, Rest: time.Hour})
	t.Cleanup(s.Close)
	return s
}

func catalog(x *search.Index) {
	x.Put(search.Server{Name: "sky"}, []search.Document{
		{ID: "mcp.sky.forecast", Name: "forecast", Description: "Storm and weather.", Digest: "sha256:1"},
		{ID: "mcp.sky.moon", Name: "moon", Description: "Phases.", Digest: "sha256:2"},
	})
	x.Put(search.Server{Name: "books"}, []search.Document{
		{ID: "mcp.books.open_items", Name: "open_items", Description: "Invoice amounts.", Digest: "sha256:3"},
		{ID: "mcp.books.carry", Name: "carry", Description: "Carry forward.", Digest: "sha256:4"},
	})
}

func found(x *search.Index, text string) (ids, fields, notes []string) {
	a := x.Search(context.Background(), search.Query{Text: text})
	for _, h := range a.Hits {
		ids = append(ids, h.ID)
	}
	if len(a.Hits) > 0 {
		fields = a.Hits[0].Fields
	}
	return ids, fields, a.Notes
}

// await waits until every tool has its vector.
func await(t *testing.T, s *embed.Store) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for !s.IsWhole() {
		select {
		case <-again.C:
		case <-t.Context().Done():
			t.Fatal("a tool has no vector")
		}
	}
}

func TestFoundByMeaning(t *testing.T) {
	t.Parallel()
	e := serve(t)
	s := e.store(t, "", time.Minute)
	x := search.New(search.Options{Meaning: s})
	catalog(x)
	await(t, s)
	ids, fields, notes := found(x, "umbrella?")
	if len(ids) == 0 || ids[0] != "mcp.sky.forecast" || !slices.Contains(fields, "meaning") || len(notes) > 0 {
		t.Errorf("no word in common: %q %q %q", ids, fields, notes)
	}
	if ids, _, _ = found(x, "carry umbrella"); len(ids) < 2 || !slices.Contains(ids[:2], "mcp.sky.forecast") || !slices.Contains(ids[:2], "mcp.books.carry") {
		t.Errorf("words and meaning together: %q", ids)
	}
	if ids, _, _ = found(x, "mcp.books.carry"); ids[0] != "mcp.books.carry" {
		t.Errorf("who is named is not first: %q", ids)
	}
	a := x.Search(t.Context(), search.Query{Text: "umbrella", Servers: []string{"books"},
		Scope: search.NewScope(func(id string) bool { return id != "mcp.books.carry" })})
	for _, h := range a.Hits {
		if h.ID != "mcp.books.open_items" {
			t.Errorf("%s is of another server, or hidden", h.ID)
		}
	}
	x.Remove("sky")
	if ids, _, _ = found(x, "umbrella?"); slices.Contains(ids, "mcp.sky.forecast") {
		t.Errorf("removed, and found: %q", ids)
	}
}

// TestVectorsOutliveTheProcess: only what changed is asked for again, and what is broken on the disk.
func TestVectorsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	e, dir := serve(t), t.TempDir()
	fillAndCount := func(change func(*search.Index)) int64 {
		before := e.texts.Load()
		s := e.store(t, dir, time.Minute)
		x := search.New(search.Options{Meaning: s})
		catalog(x)
		change(x)
		await(t, s)
		s.Close()
		return e.texts.Load() - before
	}
	if n := fillAndCount(func(*search.Index) {}); n != 4 {
		t.Errorf("%d texts asked for at first, want 4", n)
	}
	if n := fillAndCount(func(*search.Index) {}); n != 0 {
		t.Errorf("%d texts asked for again", n)
	}
	if n := fillAndCount(func(x *search.Index) {
		x.Put(search.Server{Name: "sky"}, []search.Document{{ID: "mcp.sky.moon", Name: "moon", Description: "Phases.", Digest: "sha256:new"}})
	}); n != 1 {
		t.Errorf("%d texts asked for with another schema, want 1", n)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.f32"))
	if err != nil || len(files) != 5 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	if err := os.WriteFile(files[0], []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(files[1], 3); err != nil {
		t.Fatal(err)
	}
	if n := fillAndCount(func(*search.Index) {}); n > 2 {
		t.Errorf("%d texts asked for with two files broken", n)
	}
	for i, f := range files[2:] { // one was needed a week ago; of another tool, and half written, none in a quarter
		to, ago := f, 7*24*time.Hour
		if i > 0 {
			to, ago = filepath.Join(filepath.Dir(f), []string{"0", "gone.f32", "new-123"}[i]), 100*24*time.Hour
			if err := os.WriteFile(to, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(to, time.Now(), time.Now().Add(-ago)); err != nil {
			t.Fatal(err)
		}
	}
	foreign := filepath.Join(dir, filepath.Base(filepath.Dir(files[0])), "notes.txt")
	if err := errors.Join(os.WriteFile(foreign, nil, 0o600), os.Chtimes(foreign, time.Now(), time.Now().Add(-time.Hour*10_000))); err != nil {
		t.Fatal(err)
	}
	fillAndCount(func(x *search.Index) { // what is asked for comes after what is removed
		x.Put(search.Server{Name: "new"}, []search.Document{{ID: "mcp.new.x", Name: "x"}})
	})
	left, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(left) != len(files)+2 || !slices.Contains(left, foreign) {
		t.Errorf("what nobody needs is kept, or more was removed: %q", left)
	}
}

// TestTheEndpointFails: tools are found by words, the answer says so without the key, and a failed endpoint is left alone.
func TestTheEndpointFails(t *testing.T) {
	t.Parallel()
	ended := t.Context().Done()
	for what, special := range map[string]http.HandlerFunc{
		"slow":          func(_ http.ResponseWriter, r *http.Request) { hold(r, ended) },
		"slow to write": func(w http.ResponseWriter, r *http.Request) { w.(http.Flusher).Flush(); hold(r, ended) },
		"refuses":       func(w http.ResponseWriter, _ *http.Request) { http.Error(w, secret, http.StatusTooManyRequests) },
		"moved": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusPermanentRedirect)
		},
		"no JSON":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"no vectors": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"data":[]}`)) },
		"zero":       func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"data":[{"embedding":[0,0]}]}`)) },
		"another's": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"data":[{"index":-1,"embedding":[1]}]}`))
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			e := serve(t)
			s := e.store(t, "", 50*time.Millisecond)
			x := search.New(search.Options{Meaning: s})
			catalog(x)
			await(t, s)
			var asked atomic.Int64 // a request that was given up may still be on its way
			counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				special(w, r)
			})
			e.answer.Store(&counted)
			for _, text := range []string{"the moon", "forecast of the moon"} {
				ids, _, notes := found(x, text)
				if !slices.Contains(ids, "mcp.sky.moon") || len(notes) != 1 || !strings.HasPrefix(notes[0], "found by words alone") {
					t.Errorf("%q: %q %q", text, ids, notes)
				}
				if strings.Contains(strings.Join(notes, ""), secret) {
					t.Errorf("the key is told: %q", notes)
				}
			}
			if found(x, "moon again"); asked.Load() > 1 {
				t.Errorf("an endpoint that failed a moment ago is asked again: %d times in all", asked.Load())
			}
		})
	}
}

// hold answers nothing until the asker has gone or the test ends. A server notices the first only once it has read the body.
func hold(r *http.Request, never <-chan struct{}) {
	_, _ = io.Copy(io.Discard, r.Body)
	select {
	case <-r.Context().Done():
	case <-never:
	}
}

func TestCloseWhileAsking(t *testing.T) {
	t.Parallel()
	e := serve(t)
	asked, never := make(chan struct{}, 1), make(chan struct{})
	t.Cleanup(func() { close(never) })
	special := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- struct{}{}; hold(r, never) })
	e.answer.Store(&special)
	s := e.store(t, "", time.Minute)
	catalog(search.New(search.Options{Meaning: s}))
	<-asked
	if s.IsWhole() {
		t.Error("there are vectors that nobody has sent")
	}
	s.Close()
	s.Close()
}

// TestNobodyLearnsWhereTheEndpointIs: whoever searches is told why meaning is left out, and not where it is asked for.
func TestNobodyLearnsWhereTheEndpointIs(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, url := range []string{gone.URL + "/" + secret, "http://no-such-host.invalid/" + secret} {
		s := embed.New(t.Context(), embed.Config{URL: url, Model: "m", Timeout: 20 * time.Second})
		x := search.New(search.Options{Meaning: s})
		x.Put(search.Server{Name: "sky"}, nil)
		_, _, notes := found(x, "the moon")
		text := strings.Join(notes, "")
		if len(notes) != 1 || strings.Contains(text, secret) || strings.Contains(text, "127.0.0.1") || strings.Contains(text, "no-such-host") {
			t.Errorf("%s: %q", url, notes)
		}
		s.Close()
	}
}
