//go:build e2e && clouds

package cli

import (
	"bytes"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// serveS3 serves a backend at an address, until stop.
func serveS3(t *testing.T, backend gofakes3.Backend, address string) (at string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(gofakes3.New(backend).Server())
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return l.Addr().String(), func() {
		s.CloseClientConnections()
		s.Close()
	}
}

// TestResultsInABucket has a hub keep results in an S3 server that is stopped and started again, and a payload changed there: each call is
// answered, nothing that was stored is lost, and health tells. No file of the hub holds the bucket's secret.
func TestResultsInABucket(t *testing.T) {
	t.Parallel()
	backend := s3mem.New()
	if err := backend.CreateBucket("kept"); err != nil {
		t.Fatal(err)
	}
	at, stop := serveS3(t, backend, "127.0.0.1:0")
	const secret = "CANARY-secret-of-the-bucket"
	env := append([]string{"AWS_ACCESS_KEY_ID=ann", "AWS_SECRET_ACCESS_KEY=" + secret, "KEY=a-key-that-seals-results"}, tokensOfTwo...)
	state := t.TempDir()
	h := startHubIn(t, env, "hub.json", demoHub(`,"results":{"max_inline_tokens":1000},"persist":{"results":{"key":"${env:KEY}",
 "dir":"s3://kept?region=here&use_path_style=true&endpoint=http://`+at+`"}}`), "--state-dir", state)
	w := wireHTTP(t, h.url+"/mcp", rev2025, headerOf("ann")...).open()
	call := func() string { return last(w.send(w.call("mcp.demo.big", `{"bytes":100000}`, ""))) }
	read := func(s stored) string {
		return last(w.send(w.readStored(s.uri))) + last(w.send(w.call("result_read", `{"id":"`+string(s.id)+`","lines":"2"}`, "")))
	}
	health := func(status, says string) {
		t.Helper()
		if health, text := h.health(t, headerOf("ann")...); health.Status != status || !strings.Contains(text, says) || strings.Contains(text, secret) {
			t.Errorf("health is %s", text)
		}
	}
	first := storedIn(t, call())
	if got := read(first); strings.Count(got, "00000064 0123456789") != 2 {
		t.Errorf("got %.2000s", got)
	}
	payloads := bucketKeys(t, backend, "bytes/")
	if len(payloads) != 1 || !strings.HasSuffix(payloads[0], "-"+first.sum[:8]) {
		t.Fatalf("payloads %q", payloads)
	}
	text := []byte("something else")
	if _, err := backend.PutObject("kept", payloads[0], map[string]string{}, bytes.NewReader(text), int64(len(text)), nil); err != nil {
		t.Fatal(err)
	}
	if got := read(first); strings.Count(got, "result_corrupted") < 2 || strings.Contains(got, "0123456789") {
		t.Errorf("got %.2000s", got)
	}
	health("degraded", "was changed since")
	second := storedIn(t, call()) // beside what was changed
	if got := read(second); strings.Count(got, "00000064 0123456789") != 2 {
		t.Errorf("got %.2000s", got)
	}
	health("ready", "")

	stop()
	for range 3 {
		if got := call(); len(got) < 100_000 || strings.Contains(got, "toolhub://") {
			t.Errorf("got %.500s", got)
		}
	}
	health("degraded", "could not be stored")
	if got := read(second); strings.Count(got, "result_unavailable") < 2 || strings.Count(got, "dependency_unavailable") < 2 {
		t.Errorf("got %.2000s", got)
	}
	health("degraded", "could not be read")

	serveS3(t, backend, at)
	response := call()
	for tries := time.Tick(100 * time.Millisecond); !strings.Contains(response, "toolhub://results/"); { // until the hub tries the bucket again
		<-tries
		response = call()
	}
	for _, s := range []stored{second, storedIn(t, response)} {
		if got := read(s); strings.Count(got, "00000064 0123456789") != 2 {
			t.Errorf("got %.2000s", got)
		}
	}
	health("ready", "")
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(h.log(), secret) {
		t.Error("the log holds the secret")
	}
	err := filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(secret)) {
			t.Errorf("%s holds the secret", path)
		}
		return nil
	})
	if _, none := os.Stat(filepath.Join(state, "results")); err != nil || none == nil {
		t.Errorf("results are on the disk, too, %v", err)
	}
}

func bucketKeys(t *testing.T, backend gofakes3.Backend, prefix string) (keys []string) {
	t.Helper()
	list, err := backend.ListBucket("kept", &gofakes3.Prefix{HasPrefix: true, Prefix: prefix}, gofakes3.ListBucketPage{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Contents {
		keys = append(keys, c.Key)
	}
	return keys
}

// TestABucketThatHangs has a bucket accept connections and say nothing: calls are answered all the same.
func TestABucketThatHangs(t *testing.T) {
	t.Parallel()
	released := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-released }))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(released) })
	env := append([]string{"AWS_ACCESS_KEY_ID=ann", "AWS_SECRET_ACCESS_KEY=x"}, tokensOfTwo...)
	h := startHubIn(t, env, "hub.json", demoHub(`,"results":{"max_inline_tokens":1000},"persist":{"results":{
 "dir":"s3://kept?region=here&use_path_style=true&endpoint=`+s.URL+`"}}`))
	w := wireHTTP(t, h.url+"/mcp", rev2025, headerOf("ann")...).open()
	for range 2 { // the first waits for the bucket
		if got := last(w.send(w.call("mcp.demo.big", `{"bytes":100000}`, ""))); len(got) < 100_000 {
			t.Errorf("got %.500s", got)
		}
	}
	if health, text := h.health(t, headerOf("ann")...); health.Status != "degraded" || !strings.Contains(text, "could not be stored") {
		t.Errorf("health is %s", text)
	}
}
