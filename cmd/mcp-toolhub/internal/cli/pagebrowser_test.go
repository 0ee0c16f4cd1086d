//go:build e2e

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// browserDir names a directory whose node_modules holds axe-core. With it, tests drive Chromium.
const browserDir = "TOOLHUB_BROWSER_DIR"

// shotsDir names the directory that takes screenshots, such as docs/console.
const shotsDir = "TOOLHUB_SCREENSHOTS"

func startBrowser(t *testing.T) *chromium {
	t.Helper()
	dir := os.Getenv(browserDir)
	if dir == "" {
		t.Skip(browserDir + " names no directory with axe-core")
	}
	axe, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.WindowSize(1100, 800))
	ctx, stopAll := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, stop := chromedp.NewContext(ctx)
	limited, cancel := context.WithTimeout(ctx, 25*time.Minute)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx)
		cancel()
		stop()
		stopAll()
	})
	b := &chromium{t: t, ctx: limited, axe: string(axe)}
	err = chromedp.Listen(limited, func(e any) {
		switch e := e.(type) {
		case *runtime.EventExceptionThrown:
			text, _ := json.Marshal(e.ExceptionDetails)
			b.note("an exception: " + string(text))
		case *cdplog.EventEntryAdded:
			if e.Entry.Level == cdplog.EntryLevelError && !strings.Contains(e.Entry.Text, "the server responded with a status of") {
				b.note(fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	tell(b, cdplog.Enable, cdp.Empty{})
	tell(b, runtime.Enable, cdp.Empty{})
	return b
}

// took reports whether a fault has such words, and forgets what went wrong so far.
func (b *chromium) took(words string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := strings.Join(b.faults, "\n")
	b.faults = nil
	return strings.Contains(all, words)
}

// fill writes into a field.
func (b *chromium) fill(field, value string) {
	b.t.Helper()
	b.says("document.querySelector(" + quoted(field) + ").value = " + quoted(value))
}

// shoot keeps pictures of the page, as wide as a screen and as a phone.
func (b *chromium) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv(shotsDir)
	if dir == "" {
		return
	}
	b.says(`(() => { // no path of this machine
		const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replace(/\/tmp\/\w+(\/\d+)?/g, "/home/ann")
			.replace(/ --config \S+ --state-dir \S+/, "").replace(/^\/.*internal\/cli$/, "/home/ann/project");
	})()`)
	for _, at := range []struct {
		suffix string
		width  int
		height int
	}{{"", 1280, 860}, {"-400", 400, 860}} {
		tell(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: int64(at.width), Height: int64(at.height), DeviceScaleFactor: 1})
		picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+at.suffix+".png"), picture, 0o644); err != nil {
			b.t.Error(err)
		}
	}
	tell(b, emulation.ClearDeviceMetricsOverride, cdp.Empty{})
}

// runsSomething is what a server may write that wants something to run in a browser.
const runsSomething = `"'><img src=x onerror=hacked()><script>hacked()</script><svg onload=hacked()></textarea><iframe srcdoc="<script>parent.hacked()</script>">` +
	`{{.CSRF}} javascript:hacked() ]]>--></style>` + "\u202e\u200b\x00\x1b[31m"

// hostileServer has such a text in every field that it writes.
func hostileServer(t *testing.T) map[string]any {
	t.Helper()
	tool := func(name string, schema map[string]any) json.RawMessage {
		text, err := json.Marshal(map[string]any{"name": name, "title": runsSomething, "description": runsSomething, "inputSchema": schema,
			"annotations": map[string]any{"title": runsSomething, runsSomething: runsSomething}, "_meta": map[string]any{"example/x": runsSomething}})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	value := func(kind string, more map[string]any) map[string]any {
		field := map[string]any{"type": kind, "title": runsSomething, "description": runsSomething}
		for k, v := range more {
			field[k] = v
		}
		return field
	}
	result, err := json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": runsSomething}}, "isError": true,
		"structuredContent": map[string]any{runsSomething: runsSomething}, "_meta": map[string]any{"example/x": runsSomething}})
	if err != nil {
		t.Fatal(err)
	}
	return child(upstreamtest.Script{Name: runsSomething, Instructions: runsSomething, Results: map[string]json.RawMessage{"say": result}, Tools: []json.RawMessage{
		tool("echo", map[string]any{"type": "object", "required": []string{"text"}, "properties": map[string]any{"text": value("string", map[string]any{"default": runsSomething}),
			runsSomething: value("string", nil), "choice": value("string", map[string]any{"enum": []string{runsSomething, "a"}}), "object": value("object", map[string]any{"default": map[string]any{runsSomething: runsSomething}}),
			"group": value("object", map[string]any{"properties": map[string]any{runsSomething: value("string", map[string]any{"default": runsSomething}),
				"list": value("array", map[string]any{"items": map[string]any{"enum": []string{runsSomething}}, "default": []string{runsSomething}})}}),
			"number": value("number", nil), "flag": value("boolean", nil), "password": value("string", map[string]any{"format": "password"})}}),
		tool("bad<script>hacked()</script>", map[string]any{"type": "object"}), tool("say", map[string]any{"type": "object"}),
	}})
}

// TestPageInABrowser opens every place in Chromium, with a server that writes hostile texts: nothing of it runs, axe finds nothing, and a phone can show
// it. An approval is given and the waiting call goes on; a tool is tried by its form; somebody signs in to a server.
func TestPageInABrowser(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	p := startPermitted(t, map[string]any{"rules": []any{map[string]any{"id": "x", "match": "mcp.h.bad*", "then": "deny", "reason": runsSomething[:40]}}}, nil)
	p.far["h"] = hostileServer(t)
	auth, _ := guardedServer(t, nil)
	p.far["locked"] = map[string]any{"url": auth.Resource}
	p.far["dead"] = map[string]any{"command": "/nonexistent/<script>hacked()</script>"}
	p.write(map[string]any{"rules": []any{map[string]any{"id": "x", "match": "mcp.h.bad*", "then": "deny", "reason": runsSomething[:40]}}}, nil)
	h := p.hub()
	address, err := h.OpenPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(address))
	b.await("Overview")
	eventually(t, "the servers are there", func() bool {
		b.do(chromedp.Navigate(p.url + "/ui/tools?server=h"))
		return strings.Contains(b.text(), "mcp.h.echo")
	})
	for _, path := range []string{"", "servers", "servers/h", "servers/dead", "add", "tools", "tools?client=claude-code", "tools?q=echo", "tool?name=mcp.h.echo", "approvals", "calls", "secrets", "policy", "suggestions",
		"explain?tool=mcp.h.echo&as=local&door=http"} {
		b.do(chromedp.Navigate(p.url + "/ui/" + path))
		b.harmless(path)
	}
	b.tabs(p)
	b.approve(p)
	b.change(p)
	b.try(p)
	b.hears(p)
	b.signIn(p)
	b.elsewhere(p)
}

// TestScreenshotsInABrowser takes the pictures of docs/console.md.
func TestScreenshotsInABrowser(t *testing.T) {
	t.Parallel()
	if os.Getenv(shotsDir) == "" {
		t.Skip(shotsDir + " names no directory for screenshots")
	}
	b := startBrowser(t)
	policy := map[string]any{"rules": []any{map[string]any{"id": "keep", "match": "mcp.demo.shrink", "then": "deny", "reason": "tools stay"},
		map[string]any{"id": "read", "match": []string{"mcp.demo.echo", "mcp.demo.countdown", "mcp.demo.fail", "mcp.demo.big"}, "then": "allow", "reason": "they only read"}}}
	more := map[string]any{"deferred": map[string]any{"mode": "always", "always_load": []string{"mcp.demo.add", "mcp.demo.countdown", "mcp.demo.shrink"}}}
	p := startPermitted(t, policy, nil)
	delete(p.far, "s")
	auth, _ := guardedServer(t, nil)
	p.far["demo"] = map[string]any{"command": "mcp-toolhub", "args": []string{"demo-server"}}
	p.far["files"] = map[string]any{"command": "mcp-server-files"}
	p.far["linear"] = map[string]any{"url": auth.Resource}
	p.far["time"] = map[string]any{"command": "mcp-server-time", "disabled": true}
	p.write(policy, more)
	address, err := p.hub().OpenPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(address))
	b.await("Overview") // the page of the address leads there, and would break another way off
	eventually(t, "the servers are there", func() bool {
		b.do(chromedp.Navigate(p.url + "/ui/servers"))
		return strings.Contains(b.text(), "ready") && strings.Contains(b.text(), "What to do") && strings.Contains(b.text(), "needs sign-in")
	})
	claude, cursor := p.client(rev2025), p.client(rev2025)
	claude.as("claude-code")
	cursor.as("cursor-vscode")
	for _, args := range []string{`{"text":"README.md"}`, `{"text":"README.md"}`, `{"text":"docs/console.md"}`} { // the first gets the declaration
		claude.send(claude.call("mcp.demo.echo", args, ""))
		cursor.send(cursor.call("mcp.demo.echo", args, ""))
	}
	claude.send(claude.call("mcp.demo.big", `{"bytes":400000}`, ""))
	claude.send(claude.call("mcp.demo.big", `{"bytes":400000}`, ""))
	claude.send(claude.call("mcp.demo.fail", `{"message":"the disk is full"}`, ""))
	claude.send(claude.call("mcp.demo.fail", `{"message":"the disk is full"}`, ""))
	claude.tools()
	decided := claude.waits(claude.call("mcp.demo.add", `{"a":40,"b":2}`, `"progressToken":"p"`))
	if _, err := p.hub().Answer(t.Context(), string(p.pending(p.hub()).ID), control.Reply{Choice: "allow_once", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	decided()
	rest := claude.waits(claude.call("mcp.demo.add", `{"a":1,"b":2}`, `"progressToken":"p"`))
	counted := cursor.waits(cursor.call("mcp.demo.countdown", `{"steps":30,"delay_ms":1000}`, `"progressToken":"p"`))
	v := p.pending(p.hub())
	eventually(t, "the calls are in the records", func() bool {
		b.do(chromedp.Navigate(p.url + "/ui/"))
		return strings.Contains(b.text(), "awaiting approval") && strings.Contains(b.text(), "running") && strings.Contains(b.text(), "1 failed") && strings.Contains(b.text(), "today: ")
	})
	b.shoot("overview")
	tell(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
	b.shoot("overview-dark")
	tell(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
	for name, path := range map[string]string{"servers": "servers", "server": "servers/files", "add": "add", "tools": "tools", "tool": "tool?name=mcp.demo.add", "policy": "policy",
		"calls": "calls", "approvals": "approvals"} {
		b.do(chromedp.Navigate(p.url + "/ui/" + path))
		b.shoot(name)
	}
	code, err := p.hub().PageCode(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(p.url+"/ui/approvals/"+string(v.ID)), chromedp.SendKeys(chromedp.CSS("#code"), code+"\r"))
	b.await("may answer approvals")
	b.do(chromedp.Navigate(p.url + "/ui/approvals/" + string(v.ID)))
	b.shoot("approval")
	b.do(chromedp.Navigate(p.url+"/ui/approvals/"+string(v.ID)), chromedp.Click(chromedp.CSS(`button[value=allow_once]`)))
	b.await("No call waits")
	rest()
	eventually(t, "the call has its story", func() bool {
		b.do(chromedp.Navigate(p.url + "/ui/calls/" + string(v.Invocation)))
		return strings.Contains(b.text(), "succeeded")
	})
	b.shoot("call")
	counted()
}

// tabs opens the page in more tabs than a browser has connections to a host: each is shown.
func (b *chromium) tabs(p *permitted) {
	b.t.Helper()
	b.do(chromedp.Navigate(p.url + "/ui/servers"))
	for range 7 {
		ctx, stop := chromedp.NewContext(b.ctx, chromedp.WithNewWindow(false)) // so that one tab alone is seen
		defer stop()
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if err := chromedp.Do(limited, chromedp.Navigate(p.url+"/ui/servers"), chromedp.WaitVisible(chromedp.CSS("h1"))); err != nil {
			b.t.Fatalf("the page in another tab: %v", err)
		}
	}
}

// approve answers a call that begins to wait while the page is open.
func (b *chromium) approve(p *permitted) {
	b.t.Helper()
	b.do(chromedp.Navigate(p.url + "/ui/approvals"))
	b.await("No call waits")
	w := p.client(rev2025).open()
	arguments, _ := json.Marshal(map[string]string{"text": runsSomething})
	rest := w.waits(w.call("mcp.h.echo", string(arguments), `"progressToken":"p"`))
	v := p.pending(p.hub())
	b.await("mcp.h.echo") // by itself
	b.usable("an approval in the list")
	b.press(`[id="` + string(v.ID) + `"]`)
	b.shows("#code")
	b.usable("an approval that asks for a code")
	name := b.says("document.querySelector('footer code').textContent")
	code, err := p.hub().PageCode(b.t.Context(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.SendKeys(chromedp.CSS("#code"), code+"\r"))
	b.shows("#arguments")
	b.usable("an approval")
	b.fill("#arguments", `{"text": "edited"}`)
	b.do(chromedp.Click(chromedp.CSS(`button[value=allow_once]`)))
	b.await("No call waits")
	if got := rest(); !strings.Contains(got, "edited") {
		b.t.Errorf("the call: %s", got)
	}
	b.calm("approvals")
}

// change looks at answers that were given, is shown a server before it would be added, and disables and enables one.
func (b *chromium) change(p *permitted) {
	b.t.Helper()
	b.usable("answers that were given")
	b.do(chromedp.Navigate(p.url + "/ui/add"))
	b.fill("#server", "mcp-toolhub demo-server")
	b.press("main form button.main")
	b.await("The hub would add")
	b.usable("a server that is shown first")
	b.do(chromedp.Navigate(p.url + "/ui/servers/s"))
	b.press("#disable-s")
	b.await("s: disabled")
	b.usable("a server that is disabled")
	b.press("#enable-s")
	b.await("s: enabled")
	b.calm("changes")
}

// try calls a tool by its form.
func (b *chromium) try(p *permitted) {
	b.t.Helper()
	b.do(chromedp.Navigate(p.url + "/ui/tool?name=mcp.h.echo"))
	b.fill(`[name="argument.text"]`, "tried <b>")
	b.do(chromedp.Click(chromedp.CSS("button.main")))
	b.await("waits for a person")
	v := p.pending(p.hub())
	b.do(chromedp.Navigate(p.url + "/ui/approvals/" + string(v.ID)))
	b.press("button[value=allow_once]")
	b.await("Allow once: mcp.h.echo")
	eventually(b.t, "the call has ended", func() bool {
		b.do(chromedp.Navigate(p.url + "/ui/tries/" + string(v.Invocation)))
		return strings.Contains(b.text(), "succeeded")
	})
	b.usable("a call that was tried")
	eventually(b.t, "the call has its story", func() bool {
		b.do(chromedp.Navigate(p.url + "/ui/calls/" + string(v.Invocation)))
		return strings.Contains(b.text(), "succeeded")
	})
	b.usable("a story")
	eventually(b.t, "the list has the call", func() bool {
		b.do(chromedp.Navigate(p.url + "/ui/calls"))
		return strings.Contains(b.text(), "mcp.h.echo")
	})
	b.usable("calls")
	b.calm("tools")
}

// harmless: nothing that a server or client has written runs in the page, and axe finds nothing.
func (b *chromium) harmless(where string) {
	b.t.Helper()
	if b.says("document.querySelectorAll('h1').length") != "1" || b.says("typeof hacked") != "undefined" ||
		b.says("document.querySelectorAll('main img, main script, main svg:not(.bars), main iframe').length") != "0" {
		b.t.Errorf("%s: %s", where, b.says("document.body.innerHTML"))
	}
	b.usable(where)
	b.calm(where)
}

// hears calls a tool whose result wants something to run.
func (b *chromium) hears(p *permitted) {
	b.t.Helper()
	b.do(chromedp.Navigate(p.url+"/ui/tool?name=mcp.h.say"), chromedp.Click(chromedp.CSS("button.main")))
	v := p.pending(p.hub())
	b.do(chromedp.Navigate(p.url + "/ui/approvals/" + string(v.ID)))
	b.press("button[value=allow_once]")
	b.await("Allow once: mcp.h.say")
	for _, page := range []string{"/ui/tries/", "/ui/calls/"} {
		eventually(b.t, page+" has the result", func() bool {
			b.do(chromedp.Navigate(p.url + page + string(v.Invocation)))
			return strings.Contains(b.text(), "failed") && strings.Contains(b.text(), "onerror=hacked()")
		})
		b.harmless(page)
	}
}

// elsewhere tries from other sites what they may not do: to frame the page, and to send it forms.
func (b *chromium) elsewhere(p *permitted) {
	b.t.Helper()
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/frame" {
			fmt.Fprintf(w, `<body><iframe id=f src="%s/ui/servers"></iframe>`, p.url)
			return
		}
		fmt.Fprintf(w, `<body><form method=post action="%s/ui/servers/s/disable"><input name=csrf value=x></form><script>document.forms[0].submit()</script>`, p.url)
	}))
	defer evil.Close()
	for _, site := range []string{evil.URL, strings.Replace(evil.URL, "127.0.0.1", "localhost", 1)} { // of one site with the hub, and of another
		b.do(chromedp.Navigate(site + "/frame"))
		eventually(b.t, "the browser refuses to frame the page", func() bool { return b.took("frame-ancestors 'none'") })
		b.do(chromedp.Navigate(site + "/form"))
		eventually(b.t, "the form is refused", func() bool {
			text := b.text()
			return strings.Contains(text, "nothing was done") || strings.Contains(text, "Sign in")
		})
	}
	b.do(chromedp.Navigate(p.url + "/ui/servers"))
	if strings.Contains(b.says("document.querySelector('main').innerText"), "stopped") {
		b.t.Error("a form of another site has disabled a server")
	}
}

// chromium is Chromium without a window, and what went wrong in it.
type chromium struct {
	t   *testing.T
	ctx context.Context
	axe string

	mu     sync.Mutex
	faults []string
}

// tell sends a command of the protocol of browsers.
func tell[P, R any](b *chromium, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	r, err := chromedp.Call(b.ctx, command, params)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *chromium) note(fault string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, fault)
}

// calm fails the test with what went wrong in the browser so far.
func (b *chromium) calm(where string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		b.t.Errorf("%s: %s", where, f)
	}
	b.faults = nil
}

func (b *chromium) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// says is what an expression of the page gives, also one that it promises.
func (b *chromium) says(expression string) string {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("(async () => String(await ("+expression+")))()", chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}

// text is what the page says; "" while it is another one.
func (b *chromium) text() string {
	text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body ? document.body.innerText : ''"))
	return text
}

// await waits until the page's text holds words.
func (b *chromium) await(words string) {
	b.t.Helper()
	eventually(b.t, "the page says "+words, func() bool { return strings.Contains(b.text(), words) })
}

// shows waits until the page has an element. A page that is replaced meanwhile does not end the wait, as it ends one for a node.
func (b *chromium) shows(selector string) {
	b.t.Helper()
	b.holds("the page shows "+selector, "document.querySelector("+quoted(selector)+") !== null")
}

// press clicks an element once the page has it, likewise.
func (b *chromium) press(selector string) {
	b.t.Helper()
	b.holds(selector+" is pressed", "(e => e !== null && (e.click(), true))(document.querySelector("+quoted(selector)+"))")
}

// holds waits until an expression of the page is true.
func (b *chromium) holds(what, expression string) {
	b.t.Helper()
	eventually(b.t, what, func() bool {
		is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression))
		return err == nil && is
	})
}

// usable fails the test where axe finds something, in light and in dark, or where a phone has to scroll sideways.
func (b *chromium) usable(where string) {
	b.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		tell(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](b.axe+"; true")); err != nil {
			b.t.Fatal(err)
		}
		found := b.says(`axe.run().then(r => JSON.stringify(r.violations.map(v => [v.id, v.help, v.nodes.slice(0, 3).map(n => n.html + " " + n.failureSummary)])))`)
		if found != "[]" {
			b.t.Errorf("%s, %s: %s", where, scheme, found)
		}
	}
	tell(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 360, Height: 740, DeviceScaleFactor: 2, Mobile: true})
	if wide := b.says("document.documentElement.scrollWidth - innerWidth"); wide != "0" {
		b.t.Errorf("%s on a phone is %s pixels too wide", where, wide)
	}
	tell(b, emulation.ClearDeviceMetricsOverride, cdp.Empty{})
	tell(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
}

// signIn signs in to a server, by the hub's own page and the authorization server.
func (b *chromium) signIn(p *permitted) {
	b.t.Helper()
	b.do(chromedp.Navigate(p.url+"/ui/servers"), chromedp.Click(chromedp.CSS("#signin-locked")))
	b.await("You go on to the sign-in of locked")
	b.usable("a sign-in")
	b.do(chromedp.Click(chromedp.CSS("main button.main")))
	b.await("You are signed in to locked")
	b.usable("the end of a sign-in")
	eventually(b.t, "the server is ready", func() bool {
		b.do(chromedp.Navigate(p.url + "/ui/servers/locked"))
		return strings.Contains(b.text(), "Signed in at ")
	})
	b.calm("sign-in")
}
