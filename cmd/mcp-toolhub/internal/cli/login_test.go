package cli

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// browserOfTests stands for xdg-open: it goes to an address as a browser does whose person agrees to everything.
func browserOfTests() {
	jar, _ := cookiejar.New(nil) // never fails
	resp, err := (&http.Client{Jar: jar}).Get(os.Args[1])
	if err != nil {
		os.Exit(1)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}

// guardedServer serves an MCP server "s" that wants a sign-in, and returns a config with it and a second one.
func guardedServer(t *testing.T, change func(*upstreamtest.AuthServer)) (auth *upstreamtest.AuthServer, config string) {
	t.Helper()
	return guardedServerOver(t, upstreamtest.Options{JSON: true}, change)
}

// guardedServerOver is guardedServer for a server with these options.
func guardedServerOver(t *testing.T, o upstreamtest.Options, change func(*upstreamtest.AuthServer)) (*upstreamtest.AuthServer, string) {
	t.Helper()
	fake, kind := upstreamtest.NewHandler(o), "http"
	if o.SSE {
		kind = "sse"
	}
	auth := &upstreamtest.AuthServer{Lifetime: time.Hour, Scopes: []string{"read"}}
	authServer, resource := httptest.NewUnstartedServer(auth), httptest.NewUnstartedServer(auth.Guard(fake))
	auth.Issuer = "http://" + authServer.Listener.Addr().String()
	auth.Resource = "http://" + resource.Listener.Addr().String() + "/mcp"
	if change != nil {
		change(auth)
	}
	for _, s := range []*httptest.Server{authServer, resource} {
		s.Start()
		t.Cleanup(s.Close)
	}
	t.Cleanup(fake.Close)
	return auth, "mcpServers:\n  s: {type: " + kind + ", url: " + auth.Resource + "}\n  demo: {command: mcp-toolhub, args: [demo-server]}\n" +
		"policy: {rules: [{match: '*', then: allow}]}\n"
}

// signInHome is a home directory with a config.
type signInHome struct {
	dir, file string
	env       []string // besides that of a scratch directory
}

func newSignInHome(t *testing.T, config string) signInHome {
	t.Helper()
	h := signInHome{dir: t.TempDir()}
	h.file = filepath.Join(h.dir, "hub.yaml")
	if err := os.WriteFile(h.file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h signInHome) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "mcp-toolhub", append(args, "--config", h.file)...)
	cmd.Dir, cmd.Env = h.dir, append(scratchEnv(h.dir), h.env...)
	return cmd
}

// run runs a command and returns what it says, and its exit code.
func (h signInHome) run(t *testing.T, args ...string) (text string, code exitCode) {
	t.Helper()
	cmd := h.command(t, args...)
	out, _ := cmd.CombinedOutput()
	t.Logf("$ mcp-toolhub %s\n%s", strings.Join(args, " "), out)
	return string(out), exitCode(cmd.ProcessState.ExitCode())
}

func TestBrowserOpensWebAddressesOnly(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "file:///etc/passwd", "javascript:alert(1)", "--help", "ms-msdt:/id", "x; true"} {
		if openBrowser(address) == nil {
			t.Errorf("opens %q", address)
		}
	}
}

// TestSignInsAreClosed checks that a state directory which others could read keeps no sign-in open to them.
func TestSignInsAreClosed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{signin.FileName, signin.FileName + ".key"} {
		if !strings.Contains(strings.Join(hub.OwnState, " "), name) {
			t.Errorf("%s is not among the hub's own files", name)
		}
	}
}
