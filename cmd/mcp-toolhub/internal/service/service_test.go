package service_test

import (
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/service"
)

// hub has words that each kind of file has to quote.
var hub = service.Hub{Program: "/opt/a b/mcp-toolhub", Args: []string{"serve", "--config", `/home/ann/50% of $HOME/"x\y" & <z>.yaml`},
	Env: []string{"PATH=/home/ann/bin:/usr/bin", "XDG_STATE_HOME=/srv/50%"}}

func TestSystemd(t *testing.T) {
	t.Parallel()
	u, err := service.New(service.User{OS: "linux", Home: "/home/ann", Config: "/home/ann/.config"}, hub)
	if err != nil {
		t.Fatal(err)
	}
	if want := "/home/ann/.config/systemd/user/mcp-toolhub.service"; filepath.ToSlash(u.File) != want || !service.Own(u.Text) {
		t.Errorf("%s:\n%s", u.File, u.Text)
	}
	const want = `ExecStart="/opt/a b/mcp-toolhub" "serve" "--config" "/home/ann/50%% of $$HOME/\"x\\y\" & <z>.yaml"`
	for _, line := range []string{want, `Environment="XDG_STATE_HOME=/srv/50%%"`} {
		if !slices.Contains(strings.Split(u.Text, "\n"), line) {
			t.Errorf("no line %s in\n%s", line, u.Text)
		}
	}
}

// systemd itself finds nothing wrong with the unit, and with that of packages.
func TestSystemdTakesTheUnit(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd is not here")
	}
	real := hub
	if real.Program, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	u, err := service.New(service.User{OS: "linux", Home: "/home/ann", Config: "/home/ann/.config"}, real)
	if err != nil {
		t.Fatal(err)
	}
	packaged, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "internal", "packaging", "linux", "mcp-toolhub.service"))
	if err != nil {
		t.Fatal(err)
	}
	system := strings.Replace(string(packaged), "/usr/bin/mcp-toolhub", real.Program, 1)
	for text, ok := range map[string]bool{u.Text: true, system: true, strings.Replace(u.Text, "KillMode=mixed", "KillMode=mixt", 1): false} {
		file := filepath.Join(t.TempDir(), "mcp-toolhub.service")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "verify", "--man=no", file)
		cmd.Env = append(os.Environ(), "SYSTEMD_LOG_LEVEL=warning")
		said, err := cmd.CombinedOutput()
		if mine := strings.Contains(string(said), file); mine == ok {
			t.Errorf("%v: %s", err, said)
		}
	}
}

func TestLaunchd(t *testing.T) {
	t.Parallel()
	u, err := service.New(service.User{OS: "darwin", ID: 501, Home: "/Users/ann", Config: "/Users/ann/Library/Application Support"}, hub)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.ToSlash(u.File) != "/Users/ann/Library/LaunchAgents/mcp-toolhub.plist" || !service.Own(u.Text) {
		t.Errorf("%s:\n%s", u.File, u.Text)
	}
	var texts []string // all that stands between tags
	for d := xml.NewDecoder(strings.NewReader(u.Text)); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, u.Text)
		}
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			texts = append(texts, string(text))
		}
	}
	want := slices.Concat([]string{"Label", "mcp-toolhub", "ProgramArguments", hub.Program}, hub.Args,
		[]string{"EnvironmentVariables", "PATH", "/home/ann/bin:/usr/bin", "XDG_STATE_HOME", "/srv/50%", "WorkingDirectory", "/Users/ann"})
	if len(texts) < len(want) || !slices.Equal(texts[:len(want)], want) {
		t.Errorf("got  %q\nwant %q", texts, want)
	}
	last := u.Start[len(u.Start)-1].Args
	if u.Manager() != "launchctl" || !slices.Equal(last, []string{"launchctl", "bootstrap", "gui/501", u.File}) {
		t.Errorf("starts with %v", u.Start)
	}
}

func TestOtherSystems(t *testing.T) {
	t.Parallel()
	for os, want := range map[string]string{
		"windows": `schtasks /Create /SC ONLOGON /TN mcp-toolhub /TR "\"C:\hub.exe\" \"serve\""`,
		"freebsd": "let its own service manager run C:\\hub.exe serve",
	} {
		_, err := service.New(service.User{OS: os, Home: "x", Config: "x"}, service.Hub{Program: `C:\hub.exe`, Args: []string{"serve"}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", os, err)
		}
	}
	if _, err := service.New(service.User{OS: "linux"}, hub); err == nil {
		t.Error("a service of nobody")
	}
}
