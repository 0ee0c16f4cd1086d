package control

import (
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
)

// write leaves a notice as a hub does.
func write(t *testing.T, state string, n notice) (file string) {
	t.Helper()
	text, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(runDir(state), 0o700); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(runDir(state), strconv.Itoa(n.PID)+".json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// approvals is the model of a hub that has nothing but approvals.
type approvals struct {
	Model
	queue *approval.Approvals
}

func (a approvals) Approvals() []approval.View { return a.queue.List() }

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// deadPID is the number of a process that has ended.
func deadPID(t *testing.T) int {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^$")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// TestNoticesOfDeadHubsAreRemoved leaves the notices of dead hubs, with their sockets and without, besides one live hub and what must stay.
func TestNoticesOfDeadHubsAreRemoved(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	gone := deadPID(t)
	var dead []string
	for i := range 110 {
		dead = append(dead, write(t, state, notice{PID: 1<<30 + i, Host: hostname()}))
	}
	killed := write(t, state, notice{PID: gone, Host: hostname()}) // with its socket
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketOf(killed)})
	if err != nil {
		t.Fatal(err)
	}
	socket.SetUnlinkOnClose(false)
	if err := socket.Close(); err != nil || !exists(socketOf(killed)) {
		t.Fatal("the socket is gone", err)
	}
	dead = append(dead, killed, socketOf(killed), write(t, state, notice{PID: 1<<30 + 200, Host: hostname()}))
	stay := []string{
		write(t, state, notice{PID: 7, Host: "another-machine.invalid"}),
	}
	queue := approval.New(approval.Options{})
	defer queue.Close()
	grants, err := policy.OpenGrants(policy.GrantOptions{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s, err := Serve(t.Context(), state, Hub{Model: approvals{queue: queue}, Approvals: queue, Grants: grants}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	hubs, err := Find(t.Context(), state)
	if err != nil || len(hubs) != 1 || hubs[0].notice.PID != os.Getpid() {
		t.Errorf("found %d hubs: %v", len(hubs), err)
	}
	t.Logf("found after %s", time.Since(began))
	for _, file := range dead {
		if exists(file) {
			t.Errorf("%s of a dead hub is still there", filepath.Base(file))
		}
	}
	for _, file := range append(stay, s.file, socketOf(s.file)) {
		if !exists(file) {
			t.Errorf("%s is gone", filepath.Base(file))
		}
	}
	if err := s.Close(t.Context()); err != nil || exists(s.file) || exists(socketOf(s.file)) {
		t.Errorf("after the end: %v", err)
	}

	last := write(t, state, notice{PID: gone, Host: hostname()})
	if s, err = Serve(t.Context(), state, Hub{Model: approvals{queue: queue}, Approvals: queue, Grants: grants}, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	<-s.looked
	if exists(last) {
		t.Error("a hub that starts has not removed the notice of a dead one")
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A state directory with a path that is too long for a socket is as good as any other.
func TestLongPath(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("it takes a right to make a link there")
	}
	state := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	queue := approval.New(approval.Options{})
	defer queue.Close()
	s, err := Serve(t.Context(), state, Hub{Model: approvals{queue: queue}, Approvals: queue}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	hubs, err := Find(t.Context(), state)
	if err != nil || len(hubs) != 1 {
		t.Errorf("found %d hubs: %v", len(hubs), err)
	}
	if err := s.Close(t.Context()); err != nil || exists(s.file) || exists(socketOf(s.file)) {
		t.Errorf("after the end: %v", err)
	}
}

// The port of the page has no way into the API, whatever a request there says: for other users of the machine, or from a page in a browser.
func TestThePortOfThePageHasNoAPI(t *testing.T) {
	t.Parallel()
	queue := approval.New(approval.Options{})
	defer queue.Close()
	s, err := Serve(t.Context(), t.TempDir(), Hub{Model: approvals{queue: queue}, Approvals: queue}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	port := s.url[strings.LastIndex(s.url, ":"):]
	for name, c := range map[string]struct{ host, header, value string }{
		"nothing": {}, "token": {"", "Authorization", "Bearer x"}, "empty token": {"", "Authorization", "Bearer "}, "rebound name": {"evil.example" + port, "", ""},
		"localhost": {"localhost" + port, "", ""}, "no port": {"127.0.0.1", "", ""}, "page": {"", "Origin", "http://evil.example"},
		"own page": {"", "Origin", s.url}, "opaque page": {"", "Origin", "null"},
	} {
		for _, route := range [][2]string{{"GET", "/approvals"}, {"GET", "/approvals/watch"}, {"POST", "/approvals/apr_x"}, {"GET", "/grants"},
			{"DELETE", "/grants/grt_x"}, {"POST", "/stop"}, {"POST", "/join"}, {"POST", "/page/invite"}, {"GET", "/"}, {"CONNECT", "/approvals"}} {
			req, err := http.NewRequestWithContext(t.Context(), route[0], s.url+route[1], strings.NewReader(`{"choice":"allow_once"}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Host = c.host
			if c.header != "" {
				req.Header.Set(c.header, c.value)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s, %v: %s", name, route, resp.Status)
			}
		}
	}
}
