package signin_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

const (
	childVariable = "SIGNIN_TEST_CHILD" // the state directory of a process of TestTwoProcessesRenew
	childRounds   = 100
)

// TestTwoProcessesRenew lets two processes renew the same token 200 times in all. The authorization server ends the sign-in as soon as a
// refresh token is used a second time.
func TestTwoProcessesRenew(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(childVariable); dir != "" {
		source := signin.Open(dir).Source(upstream.ServerConfig{ID: "s", Transport: upstream.StreamableHTTP, URL: os.Getenv("SIGNIN_TEST_URL")})
		for range childRounds {
			if _, err := source.Token(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	w := newWorld(t, func(a *upstreamtest.AuthServer) { a.Lifetime = 5 * time.Second }) // so short that it is renewed at each use
	if _, err := w.login(t, nil); err != nil {
		t.Fatal(err)
	}
	var children [2]*exec.Cmd
	var output [2]bytes.Buffer
	for i := range children {
		children[i] = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTwoProcessesRenew$")
		children[i].Env = append(os.Environ(), childVariable+"="+w.dir, "SIGNIN_TEST_URL="+w.server.URL)
		children[i].Stdout, children[i].Stderr = &output[i], &output[i]
		if err := children[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, child := range children {
		if err := child.Wait(); err != nil {
			t.Errorf("process %d: %v\n%s", i, err, &output[i])
		}
	}
	if n := w.auth.Failures(); n > 0 {
		t.Errorf("%d refresh tokens were used twice", n)
	}
	if n := len(w.auth.Requests("/token")); n < childRounds {
		t.Error(fmt.Errorf("only %d renewals: the test shows nothing", n))
	}
	if !w.stored(t) {
		t.Error("the sign-in is lost")
	}
}
