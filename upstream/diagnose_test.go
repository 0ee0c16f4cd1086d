package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// diagnose walks a server and returns its steps, as text: "+name detail" or "-name detail | hint | lines".
func diagnose(t *testing.T, cfg upstream.ServerConfig) (steps []upstream.Step, text string) {
	t.Helper()
	err := upstream.Diagnose(t.Context(), upstream.Config{Servers: []upstream.ServerConfig{{ID: "other"}, cfg}, Version: "9.9"}, cfg.ID,
		func(s upstream.Step) { steps = append(steps, s) })
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range steps {
		mark := "-"
		if s.OK {
			mark = "+"
		}
		text += fmt.Sprintf("%s%s %s | %s | %s\n", mark, s.Name, s.Detail, s.Hint, strings.Join(s.Lines, " / "))
		if !s.OK && i != len(steps)-1 {
			t.Errorf("the walk went on after a step that failed: %v", s)
		}
	}
	return steps, text
}

// refusal is a server that answers everything with an HTTP status and the caller's credentials.
func refusal(t *testing.T, code int) upstream.ServerConfig {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("WWW-Authenticate", r.Header.Get("Authorization"))
		http.Error(w, "refused: "+r.Header.Get("Authorization"), code)
	}))
	t.Cleanup(srv.Close)
	return upstream.ServerConfig{ID: "s", Transport: upstream.StreamableHTTP, URL: srv.URL + "/mcp?key=open-sesame",
		Headers: map[string]string{"Authorization": "Bearer open-sesame"}}
}

func TestDiagnoseHealthy(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			_, text := diagnose(t, w.config(t, "s"))
			version := "2025-11-25"
			if modern(w) {
				version = "2026-07-28"
			}
			first := []string{"+address ", "+initialize "}
			if w.http == nil {
				first = []string{"+command ", "+start process ", "+initialize "}
			}
			for i, want := range append(first, "+list 13 tools |", "+schemas 13 admitted, 0 of them repaired, 0 excluded |", "+ping answered |") {
				if lines := strings.Split(text, "\n"); i >= len(lines) || !strings.HasPrefix(lines[i], want) {
					t.Fatalf("step %d is not %q:\n%s", i, want, text)
				}
			}
			if !strings.Contains(text, `protocol `+version+`, server "fake", version "1.2.3"`) {
				t.Errorf("who the server is does not stand in\n%s", text)
			}
		})
	}
}

// Lists other than that of tools are walked through where the server has them; one that fails is said, and costs itself.
func TestDiagnoseFeatures(t *testing.T) {
	t.Parallel()
	raw := func(texts ...string) (all []json.RawMessage) {
		for _, text := range texts {
			all = append(all, json.RawMessage(text))
		}
		return all
	}
	all := upstreamtest.Features{Prompts: raw(`{"name":"p"}`, `{"name":"q"}`, `{"name":""}`), Resources: raw(`{"uri":"x:y","name":"r"}`),
		Templates: raw(`{"uriTemplate":"x:{y}","name":"t"}`)}
	for name, c := range map[string]struct {
		script upstreamtest.Script
		want   []string
	}{
		"all":     {upstreamtest.Script{Features: all}, []string{"+features 3 prompts, 1 resource, 1 resource template |", "excluded: prompt #3 (invalid_name)", "+ping"}},
		"prompts": {upstreamtest.Script{Features: upstreamtest.Features{Prompts: raw(`{"name":"p"}`)}}, []string{"+features 1 prompt |  | \n", "+ping"}},
		"refused": {upstreamtest.Script{Features: all, Behaviours: []upstreamtest.Behaviour{upstreamtest.RefusesFeatures}},
			[]string{"+features none can be listed |", "not listed: prompts: prompts/list was refused", "not listed: resource templates: ",
				"see the server's own log", "+ping"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, text := diagnose(t, stdio("s", c.script))
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q does not stand in\n%s", want, text)
				}
			}
		})
	}
}

func TestDiagnoseFailures(t *testing.T) {
	t.Parallel()
	short := func(cfg upstream.ServerConfig, its upstream.Timeouts) upstream.ServerConfig {
		cfg.Timeouts = its
		return cfg
	}
	quits := stdio("s", upstreamtest.Script{Behaviours: []upstreamtest.Behaviour{upstreamtest.ExitsAtOnce},
		Stderr: []string{"bad key open-sesame"}})
	quits.Env = append(quits.Env, "API_KEY=open-sesame")
	vanishes := func(method string) upstream.ServerConfig {
		cfg, _ := overHTTP(t, "s", upstreamtest.Options{Intercept: func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
			if !strings.Contains(string(body), `"method":"`+method+`"`) {
				return false
			}
			http.Error(w, "no", http.StatusInternalServerError)
			return true
		}})
		return cfg
	}
	for name, c := range map[string]struct {
		cfg   upstream.ServerConfig
		wants []string
	}{
		"command": {upstream.ServerConfig{ID: "s", Transport: upstream.Stdio, Command: "no-such-program"},
			[]string{`-command command "no-such-program" was not found in PATH | install it or give the full path |`}},
		"exits": {quits, []string{"+start process", "-initialize command", "exited with status 3",
			"| run the command by hand to see why | stderr: bad key [masked] / stderr: fake server: no license key found\n"}},
		"mute": {short(stdio("s", upstreamtest.Script{Behaviours: []upstreamtest.Behaviour{upstreamtest.NeverInitialises}, Stderr: []string{"waiting"}}), upstream.Timeouts{Connect: 4 * time.Second}),
			[]string{"+start", "-initialize no answer to initialize within 4s: ", "its stderr says: waiting |", "raise timeout of", "stderr: waiting"}},
		"silent list": {short(stdio("s", upstreamtestScript(upstreamtest.SilentList)), upstream.Timeouts{List: 300 * time.Millisecond}),
			[]string{"+initialize", "-list tools/list did not end within 300ms (page 1) | if the server is only slow, raise timeout of its entry"}},
		"exits at the list": {stdio("s", upstreamtest.Script{Quits: "tools/list"}), []string{"+initialize", "-list command ",
			"exited with status 7; its stderr says: fake server: out of paper |", "| stderr: fake server: out of paper\n"}},
		"exits at the ping": {stdio("s", upstreamtest.Script{Quits: "ping"}), []string{"+schemas", "-ping command ", "exited with status 7"}},
		"401": {refusal(t, http.StatusUnauthorized), []string{"+address 127.0.0.1:", "-initialize http://127.0.0.1:",
			"refused the credentials (HTTP 401). The server says: refused: [masked] | set or renew the credentials"}},
		"500": {refusal(t, http.StatusInternalServerError), []string{"-initialize", "failed (HTTP 500). The server says: refused: [masked] | see the server's own log"}},
		"nobody": {upstream.ServerConfig{ID: "s", Transport: upstream.StreamableHTTP, URL: "http://u:open-sesame@127.0.0.1:1/mcp"},
			[]string{"-address connect to http://127.0.0.1:1/mcp: dial tcp 127.0.0.1:1:", "| check that the server runs and that url is right"}},
		"ping fails": {vanishes("ping"), []string{"+schemas 13 admitted", "-ping "}},
		"list fails": {vanishes("tools/list"), []string{"+initialize", "-list tools/list: ", "HTTP 500"}},
		"noise": {stdio("s", upstreamtestScript(upstreamtest.Noise)), []string{"warning: dropped output of the server: stdout must carry nothing",
			"+ping"}},
		"no tool left": {stdio("s", upstreamtest.Script{Tools: []json.RawMessage{[]byte(`{"name":""}`)}}),
			[]string{"+list 1 tool |", "-schemas 0 admitted, 0 of them repaired, 1 excluded | correct the tools",
				"excluded: #1 (invalid_name): its name is empty"}},
		"odd tools": {stdio("s", upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("good"), []byte(`{"name":"bare"}`), []byte(`7`)}}),
			[]string{"+schemas 2 admitted, 1 of them repaired, 1 excluded", "excluded: #3 (invalid_declaration)",
				"repaired: mcp.s.bare, inputSchema: ", "+ping"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, text := diagnose(t, c.cfg)
			for _, want := range c.wants {
				if !strings.Contains(text, want) {
					t.Errorf("%q does not stand in\n%s", want, text)
				}
			}
			if strings.Contains(text, "sesame") {
				t.Errorf("a secret stands in\n%s", text)
			}
		})
	}
}

func TestDiagnoseNothing(t *testing.T) {
	t.Parallel()
	cfg := upstream.Config{Servers: []upstream.ServerConfig{stdio("a", upstreamtestScript(upstreamtest.NeverInitialises)), {ID: "b"}}}
	never := func(s upstream.Step) { t.Errorf("step %v", s) }
	if err := upstream.Diagnose(t.Context(), cfg, "c", never); err == nil || !strings.Contains(err.Error(), "use one of a, b") {
		t.Errorf("unknown id: %v", err)
	}
	if err := upstream.Diagnose(t.Context(), cfg, "b", never); err == nil || !strings.Contains(err.Error(), "transport") {
		t.Errorf("an entry without a transport: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := upstream.Diagnose(ctx, cfg, "a", func(s upstream.Step) {
		if s.Name != upstream.StepCommand || !s.OK {
			t.Errorf("step %v", s)
		}
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
