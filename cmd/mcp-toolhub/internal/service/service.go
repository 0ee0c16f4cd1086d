// Package service says how systemd and launchd run the hub as a service of one user: the file that
// they read, and the commands that start and stop it. It runs none of them.
package service

import (
	"encoding/xml"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// mark begins each file. A file without it is somebody else's.
const mark = "Written by mcp-toolhub service install"

// Name is the service's name for systemd and for launchd.
const Name = "mcp-toolhub"

// User is whose service it is.
type User struct {
	OS     string // as runtime.GOOS has it
	ID     int
	Home   string
	Config string // the directory of the configuration of the user's programs
}

// Hub is what the service runs.
type Hub struct {
	Program string // an absolute path
	Args    []string
	Env     []string // NAME=value, of PATH at least, in which the programs of servers are found
}

// Command is one command line of a service manager.
type Command struct {
	Args    []string
	MayFail bool // it fails where there is nothing to do
}

// Unit is the service as its manager sees it.
type Unit struct {
	File    string // what the manager reads
	Text    string // what stands there
	Log     string // where the hub's log is, for a person
	Start   []Command
	Status  Command   // fails where the service does not run
	Stop    []Command // while File is there
	Stopped []Command // when it is gone
	Links   []string  // what Start leaves beside File
}

// Manager is the program of the service manager.
func (u *Unit) Manager() string { return u.Start[0].Args[0] }

// Own tells whether text is a file that the hub has written.
func Own(text string) bool { return strings.Contains(text, mark) }

// New returns the service. It fails on systems that have neither systemd nor launchd.
func New(u User, h Hub) (*Unit, error) {
	if u.Home == "" || u.Config == "" {
		return nil, errors.New("the environment names no home directory: set HOME")
	}
	switch u.OS {
	case "linux":
		return systemd(u, h), nil
	case "darwin":
		return launchd(u, h)
	case "windows":
		line := `\"` + h.Program + `\"`
		for _, arg := range h.Args {
			line += ` \"` + arg + `\"`
		}
		return nil, fmt.Errorf("on Windows the hub is no service: let the task scheduler start it when you log on, "+
			"in cmd.exe:\n  "+
			"schtasks /Create /SC ONLOGON /TN %s /TR \"%s\"\nand take it out again:\n  schtasks /Delete /TN %[1]s",
			Name, line)
	}
	return nil, fmt.Errorf("services are for systemd and launchd, which %s does not have: let its own service "+
		"manager run %s %s",
		u.OS, h.Program, strings.Join(h.Args, " "))
}

func systemd(u User, h Hub) *Unit {
	const unit = Name + ".service"
	dir := filepath.Join(u.Config, "systemd", "user")
	env := filepath.Join(u.Config, Name, "service.env")
	line := word(h.Program, "")
	for _, arg := range h.Args {
		line += " " + word(arg, "$")
	}
	var vars strings.Builder
	for _, v := range h.Env {
		vars.WriteString("Environment=" + word(v, "") + "\n")
	}
	ctl := func(words ...string) Command { return Command{Args: append([]string{"systemctl", "--user"}, words...)} }
	return &Unit{
		File: filepath.Join(dir, unit), Log: "journalctl --user -u " + Name,
		Links: []string{filepath.Join(dir, "default.target.wants", unit)},
		Text: "# " + mark + "; mcp-toolhub service remove takes it out.\n" +
			"[Unit]\nDescription=One MCP endpoint in front of many MCP servers\nDocumentation=man:mcp-toolhub(1)\n\n" +
			"[Service]\nExecStart=" + line + "\nExecReload=/bin/kill -HUP $MAINPID\n" +
			vars.String() + "EnvironmentFile=-" + strings.ReplaceAll(env, "%", "%%") + "\n" +
			// The hub stops its servers itself. A wrong command line (2) or config (3) does not mend by itself.
			"KillMode=mixed\nRestart=on-failure\nRestartPreventExitStatus=2 3\n\n" +
			"[Install]\nWantedBy=default.target\n",
		Start:   []Command{ctl("daemon-reload"), ctl("enable", unit), ctl("restart", unit)},
		Status:  ctl("status", "--no-pager", "--lines=5", unit),
		Stop:    []Command{ctl("disable", "--now", unit)},
		Stopped: []Command{ctl("daemon-reload")},
	}
}

// word quotes a word of a unit. "%" begins what systemd replaces, and in command lines "$" does, too.
func word(text, replaced string) string {
	for _, r := range "%" + replaced {
		text = strings.ReplaceAll(text, string(r), string(r)+string(r))
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}

// plist is the file of launchd.
const plist = `<?xml version="1.0" encoding="UTF-8"?>
<!-- ` + mark + `; mcp-toolhub service remove takes it out. -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>` + Name + `</string>
  <key>ProgramArguments</key>
  <array>%s</array>
  <key>EnvironmentVariables</key><dict>%s</dict>
  <key>WorkingDirectory</key>%s
  <key>StandardErrorPath</key>%s
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
</dict>
</plist>
`

func launchd(u User, h Hub) (*Unit, error) {
	var bad error
	element := func(name, text string) string {
		var b strings.Builder
		bad = errors.Join(bad, xml.EscapeText(&b, []byte(text)))
		return "<" + name + ">" + b.String() + "</" + name + ">"
	}
	var args, vars strings.Builder
	for _, arg := range append([]string{h.Program}, h.Args...) {
		args.WriteString("\n    " + element("string", arg))
	}
	for _, v := range h.Env {
		name, value, _ := strings.Cut(v, "=")
		vars.WriteString(element("key", name) + element("string", value))
	}
	file := filepath.Join(u.Home, "Library", "LaunchAgents", Name+".plist")
	log := filepath.Join(u.Home, "Library", "Logs", Name+".log")
	domain := fmt.Sprintf("gui/%d", u.ID)
	stop := Command{Args: []string{"launchctl", "bootout", domain + "/" + Name}, MayFail: true}
	return &Unit{
		File: file, Log: log,
		Text: fmt.Sprintf(plist, args.String()+"\n  ", vars.String(), element("string", u.Home),
			element("string", log)),
		Start:  []Command{stop, {Args: []string{"launchctl", "bootstrap", domain, file}}},
		Status: Command{Args: []string{"launchctl", "print", domain + "/" + Name}},
		Stop:   []Command{stop},
	}, bad
}
