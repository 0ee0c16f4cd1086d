//go:build clouds

package payload_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
)

func buckets() map[string]func(t testing.TB) testbed {
	return map[string]func(t testing.TB) testbed{"s3": func(t testing.TB) testbed { return newS3(t) }}
}

// s3 is a server of the S3 API with one bucket, which counts the requests by method.
type s3 struct {
	url string // of the bucket

	mu       sync.Mutex
	more     *sync.Cond     // requests have come
	requests map[string]int // "list" is one, too
	refuse   http.Handler   // answers everything; nil: the server does
}

func newS3(t testing.TB) *s3 {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("results"); err != nil {
		t.Fatal(err)
	}
	s := &s3{requests: make(map[string]int)}
	s.more = sync.NewCond(&s.mu)
	api := gofakes3.New(backend).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		kind := r.Method
		if r.URL.Query().Has("list-type") {
			kind = "list"
		}
		s.requests[kind]++
		s.more.Broadcast()
		h := s.refuse
		s.mu.Unlock()
		if h == nil {
			h = api
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL + "/results"
	return s
}

// answerWith has the handler answer everything from now on; nil: the server does again.
func (s *s3) answerWith(h http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = h
}

// count returns how many requests of that kind came, at least that many, and forgets them.
func (s *s3) count(kind string, least int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.requests[kind] < least {
		s.more.Wait()
	}
	defer delete(s.requests, kind)
	return s.requests[kind]
}

func (s *s3) config() payload.Config {
	return payload.Config{URL: "s3://results?region=here&anonymous=true&use_path_style=true&endpoint=" + strings.TrimSuffix(s.url, "/results")}
}

func (s *s3) slow() bool { return true }

func (s *s3) do(t testing.TB, method, key string, body []byte) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+"/"+key, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 {
		t.Fatalf("%s %s: %s, %v: %s", method, key, answer.Status, err, text)
	}
	return text
}

func (s *s3) get(t testing.TB, key string) []byte {
	t.Helper()
	return s.do(t, http.MethodGet, key, nil)
}
func (s *s3) set(t testing.TB, key string, text []byte) {
	t.Helper()
	s.do(t, http.MethodPut, key, text)
}
func (s *s3) remove(t testing.TB, key string) { t.Helper(); s.do(t, http.MethodDelete, key, nil) }

func (s *s3) keys(t testing.TB, prefix string) (keys []string) {
	t.Helper()
	var list struct {
		Contents []struct{ Key string }
	}
	if err := xml.Unmarshal(s.do(t, http.MethodGet, "?prefix="+prefix, nil), &list); err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Contents {
		keys = append(keys, c.Key)
	}
	slices.Sort(keys)
	return keys
}

// TestWhatABucketIsAsked counts the requests: no result makes the hub list the bucket, and a sweep reads an entry once.
func TestWhatABucketIsAsked(t *testing.T) {
	t.Parallel()
	at := newS3(t)
	s := openAt(t, at)
	at.count("list", 5) // of the sweep that Open begins
	for _, id := range []string{"a", "b", "c"} {
		put(t, s, entry(id), noise(1000+len(id)))
	}
	if lists, puts := at.count("list", 0), at.count(http.MethodPut, 0); lists != 0 || puts != 6 {
		t.Errorf("%d lists, %d PUT for three results", lists, puts)
	}
	at.count(http.MethodGet, 0)
	for i, want := range []int{3, 0, 0} { // the entries, once
		if err := s.Sweep(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		if lists, gets := at.count("list", 0), at.count(http.MethodGet, 0); lists != 5 || gets != want {
			t.Errorf("sweep %d: %d lists, %d GET", i, lists, gets)
		}
	}
	put(t, s, entry("a"), noise(9999)) // the same id again, as for the result of a task
	if err := s.Sweep(t.Context(), time.Now().Add(3*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got, err := read(s, "res_a"); err != nil || len(got) != 9999 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestABucketThatRefuses has a bucket refuse, and hang up: what comes meanwhile is not stored, nothing that was stored is lost or
// called corrupt, and the bucket is used again when it answers again.
func TestABucketThatRefuses(t *testing.T) {
	t.Parallel()
	at := newS3(t)
	s := openAt(t, at)
	big := noise(300_000)
	e := put(t, s, entry("a"), big)
	denied := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>no</Message></Error>`)
	})
	part := at.get(t, payloadOf(e))[:1000]
	cut := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100000")
		_, _ = w.Write(part)
		panic(http.ErrAbortHandler)
	})
	for what, h := range map[string]http.Handler{"denied": denied, "cut": cut} {
		at.answerWith(h)
		err := s.Read(e, func([]byte) error { return nil })
		if corrupt := (*payload.CorruptError)(nil); err == nil || errors.As(err, &corrupt) {
			t.Errorf("%s: read: %v", what, err)
		}
		if _, err := s.Put(entry("b"), noise(100)); err == nil || !strings.Contains(err.Error(), "s3://results can be reached") || strings.Contains(err.Error(), "anonymous") {
			t.Errorf("%s: stored: %v", what, err)
		}
		if problems := strings.Join(s.Problems(), "\n"); !strings.Contains(problems, "could not be stored") || !strings.Contains(problems, "could not be read") {
			t.Errorf("%s: problems %q", what, problems)
		}
		if err := s.Sweep(t.Context(), time.Now()); err == nil {
			t.Errorf("%s: swept", what)
		}
		at.answerWith(nil)
		tries := time.Tick(100 * time.Millisecond)
		for err != nil { // until the bucket is tried again
			<-tries
			_, err = s.Put(entry("c"), noise(100))
		}
		if got, err := read(s, e.ID); err != nil || !bytes.Equal(got, big) || len(s.Problems()) != 0 {
			t.Errorf("%s: afterwards %d bytes, %v, %q", what, len(got), err, s.Problems())
		}
	}
}

// TestNoBucket opens what is not there, and URLs that the drivers refuse.
func TestNoBucket(t *testing.T) {
	t.Parallel()
	at := newS3(t)
	c := at.config()
	c.URL = strings.Replace(c.URL, "s3://results", "s3://nothing", 1)
	if _, err := open(t, c).Put(entry("a"), noise(100)); err == nil || !strings.Contains(err.Error(), "NoSuchBucket") {
		t.Errorf("got %v", err)
	}
	c.URL += "&nonsense=secret"
	if _, err := payload.Open(context.Background(), c, nil, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "nonsense") ||
		strings.Contains(err.Error(), "endpoint") {
		t.Errorf("got %v", err)
	}
}
