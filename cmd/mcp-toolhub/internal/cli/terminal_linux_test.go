package cli

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// pseudoTerminal is a terminal that a test sits at.
type pseudoTerminal struct {
	keys, program *os.File

	mu     sync.Mutex
	screen strings.Builder
	read   chan struct{} // closed when the program has ended
}

func newTerminal(t *testing.T) *pseudoTerminal {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = keys.Close() })
	if err := unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &pseudoTerminal{keys: keys, program: program, read: make(chan struct{})}
}

// start starts a command whose input and errors are this terminal. What it prints comes back when it has ended, unless
// that goes elsewhere already.
func (p *pseudoTerminal) start(t *testing.T, cmd *exec.Cmd) (wait func() string) {
	t.Helper()
	var out strings.Builder
	cmd.Stdin, cmd.Stderr = p.program, p.program
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = p.program.Close()
	go func() {
		defer close(p.read)
		buf := make([]byte, 4096)
		for {
			n, err := p.keys.Read(buf)
			p.mu.Lock()
			p.screen.Write(buf[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return func() string {
		_ = cmd.Wait()
		<-p.read
		return out.String()
	}
}

func (p *pseudoTerminal) shown() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen.String()
}

// sees waits until the screen shows text so many times.
func (p *pseudoTerminal) sees(t *testing.T, text string, times int) {
	t.Helper()
	eventually(t, "the terminal shows "+text, func() bool { return strings.Count(p.shown(), text) >= times })
}

func (p *pseudoTerminal) types(t *testing.T, keys string) {
	t.Helper()
	if _, err := p.keys.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// States are coloured where a person reads them: on a terminal, unless NO_COLOR is set. Files and pipes get none.
func TestStatesAreColouredOnATerminalOnly(t *testing.T) {
	t.Parallel()
	config := configText(t, map[string]any{"good": child(upstreamtest.Script{}), "gone": map[string]any{"command": "no-such-program"}}, nil)
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	const green, red = "\x1b[32m", "\x1b[31m"
	for _, c := range []struct {
		name     string
		env      []string
		terminal bool
		want     bool
	}{
		{name: "a terminal", terminal: true, want: true},
		{name: "a terminal with NO_COLOR", env: []string{"NO_COLOR=1"}, terminal: true},
		{name: "a terminal with an empty NO_COLOR", env: []string{"NO_COLOR="}, terminal: true, want: true},
		{name: "a terminal without colours", env: []string{"TERM=dumb"}, terminal: true},
		{name: "a pipe"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "hub.json"), []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(program, "servers", "--config", "hub.json", "--log-level", "error")
			cmd.Dir, cmd.Env = dir, append(scratchEnv(dir), c.env...)
			p := newTerminal(t)
			if c.terminal {
				cmd.Stdout = p.program
			}
			shown := p.start(t, cmd)()
			if c.terminal {
				shown = p.shown()
			}
			for _, want := range []string{green + "ready\x1b[0m    ", red + "backoff\x1b[0m  "} {
				if strings.Contains(shown, want) != c.want {
					t.Errorf("%q in this is %t, want %t:\n%q", want, !c.want, c.want, shown)
				}
			}
			if !c.want && strings.Contains(shown, "\x1b[3") {
				t.Errorf("colours where none are wanted:\n%q", shown)
			}
		})
	}
}

// A person who starts a hub at a terminal is told how clients reach it.
func TestServeSaysHowToConnect(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, token, want, keys string }{
		{args: "--http 127.0.0.1:0", want: `Connect clients to (http://127\.0\.0\.1:\d+/mcp), for instance: claude mcp add --transport http toolhub http://127\.0\.0\.1:\d+/mcp\r\n`,
			keys: "\x03"},
		{args: "--http 0.0.0.0:0", token: "the-token-of-ann-0123456789",
			want: `Connect clients to (http://127\.0\.0\.1:\d+/mcp), .* --header "Authorization: Bearer TOKEN"\r\n`, keys: "\x03"},
		{want: `The hub waits for a client on stdin, .*\r\n.*mcp-toolhub serve --http 127\.0\.0\.1:8808`, keys: "\x04"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			hub := map[string]any{}
			if c.token != "" {
				hub["auth"] = map[string]any{"tokens": []any{map[string]any{"name": "ann", "token": "${env:ANN}"}}}
			}
			if err := os.WriteFile(filepath.Join(dir, "hub.json"), []byte(configText(t, map[string]any{}, map[string]any{"hub": hub})), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(program, append([]string{"serve", "--config", "hub.json"}, strings.Fields(c.args)...)...)
			cmd.Dir, cmd.Env = dir, append(scratchEnv(dir), "ANN="+c.token)
			p := newTerminal(t)
			wait := p.start(t, cmd)
			want := regexp.MustCompile(c.want)
			eventually(t, "it says how to connect", func() bool { return want.MatchString(p.shown()) })
			if m := want.FindStringSubmatch(p.shown()); len(m) > 1 {
				resp, err := http.Get(strings.TrimSuffix(m[1], "/mcp") + "/health/live")
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
			}
			p.types(t, c.keys)
			wait()
			if code := cmd.ProcessState.ExitCode(); code != 0 {
				t.Errorf("exit code %d\n%s", code, p.shown())
			}
		})
	}
}
