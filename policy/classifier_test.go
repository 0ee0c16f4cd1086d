package policy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// TestMain lets the test program be a classifier's command: it echoes what CLASSIFIER_SAYS holds.
func TestMain(m *testing.M) {
	if says := os.Getenv("CLASSIFIER_SAYS"); says != "" {
		os.Exit(beClassifier(says))
	}
	os.Exit(m.Run())
}

func beClassifier(says string) int {
	question, err := io.ReadAll(os.Stdin)
	if err != nil || !json.Valid(question) {
		return 2
	}
	switch says {
	case "silence":
		// A grandchild that holds the pipe must not hold up the call.
		child := exec.Command("sleep", "60")
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			return 2
		}
		fmt.Fprintln(os.Stderr, child.Process.Pid)
		if file := os.Getenv("PID_FILE"); file != "" {
			if err := os.WriteFile(file, fmt.Append(nil, child.Process.Pid), 0o600); err != nil {
				return 2
			}
		}
		select {}
	case "late":
		child := exec.Command("sh", "-c", `sleep 0.5; echo '{"behavior":"deny","reason":"late"}'`)
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			return 2
		}
		return 0
	case "failure":
		return 3
	}
	fmt.Print(says)
	return 0
}

// classifiers are both kinds of classifier that say the same: the two implementations pass the same tests.
func classifiers(t *testing.T, says string, c policy.ClassifierConfig) map[string]policy.ClassifierConfig {
	t.Helper()
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		question, err := io.ReadAll(r.Body)
		switch {
		case err != nil || !json.Valid(question) || r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer key":
			w.WriteHeader(http.StatusTeapot)
		case says == "silence":
			select {
			case <-stop:
			case <-r.Context().Done():
			}
		case says == "failure":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			io.WriteString(w, says)
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(stop) })
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second // what is not about silence is not about speed
	}
	byCommand, byHTTP := c, c
	byCommand.Command, byCommand.Env = []string{os.Args[0]}, []string{"CLASSIFIER_SAYS=" + says, "PATH=" + os.Getenv("PATH"),
		"GORACE=atexit_sleep_ms=0"}
	byHTTP.URL, byHTTP.Headers = server.URL+"/secret-path", map[string]string{"Authorization": "Bearer key"}
	return map[string]policy.ClassifierConfig{"command": byCommand, "http": byHTTP}
}

// TestWhatTheClassifierAsksIsAskedEveryTime: no answer is offered that would not hold, and none spares the next question.
func TestWhatTheClassifierAsksIsAskedEveryTime(t *testing.T) {
	t.Parallel()
	for says, remembered := range map[string]bool{`{"behavior":"ask"}`: false, "failure": false, `{"behavior":"allow"}`: true} {
		for kind, config := range classifiers(t, says, policy.ClassifierConfig{}) {
			grants, err := policy.OpenGrants(policy.GrantOptions{File: filepath.Join(t.TempDir(), "grants.yaml")})
			if err != nil {
				t.Fatal(err)
			}
			e := compile(t, policy.Settings{Grants: grants, Classifier: policy.NewClassifier(config)})
			r := writer("mcp.x.y")
			r.Actor.Session = "s"
			d := e.Classify(t.Context(), r)
			if d.Behavior != tool.Ask || (len(d.SuggestedUpdates) > 0) != remembered {
				t.Errorf("%s says %s: %s, %v", kind, says, d.Behavior, d.SuggestedUpdates)
			}
			if _, err = grants.AddSession("s", policy.Grant{Then: tool.Allow, Tool: "mcp.x.y", Actor: r.Actor.Ref(), Schema: r.Tool.SchemaDigest}); err != nil {
				t.Fatal(err)
			}
			if d := e.Classify(t.Context(), r); (d.Behavior == tool.Allow) != remembered {
				t.Errorf("%s says %s, and a person has allowed it before: %s %v", kind, says, d.Behavior, d.Reason)
			}
		}
	}
}

// TestAnswersAreReadToTheirEnd: what a command says counts also where it is read a while after the command has ended, as on
// a busy machine.
func TestAnswersAreReadToTheirEnd(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no shell")
	}
	e := compile(t, policy.Settings{Classifier: policy.NewClassifier(classifiers(t, "late", policy.ClassifierConfig{})["command"])})
	if d := e.Classify(t.Context(), writer("mcp.x.y")); d.Behavior != tool.Deny {
		t.Errorf("%s %v", d.Behavior, d.Reason["classifier"])
	}
}

// TestDecideLeavesTheClassifierToClassify: who does not ask it asks a person.
func TestDecideLeavesTheClassifierToClassify(t *testing.T) {
	t.Parallel()
	e := compile(t, policy.Settings{
		Sets: user(policy.Rule{Match: []string{"mcp.ok.*"}, Then: tool.Allow}, policy.Rule{Match: []string{"mcp.no.*"}, Then: tool.Deny}),
		Classifier: policy.NewClassifier(policy.ClassifierConfig{URL: "http://127.0.0.1:1/", Match: []string{"mcp.ok.*", "mcp.no.*"},
			Tags: []string{"write"}}),
	})
	if d := decides(t, e, writer("mcp.ok.x"), tool.Ask, ""); d.PendingClassifierCheck["classifier"] != "http:127.0.0.1:1" {
		t.Errorf("%+v", d)
	}
	if d := decides(t, e, writer("mcp.no.x"), tool.Deny, "user"); d.PendingClassifierCheck != nil {
		t.Errorf("%+v", d)
	}
	if d := decides(t, e, writer("mcp.else.x"), tool.Ask, "default"); d.PendingClassifierCheck != nil {
		t.Errorf("a classifier is asked about what it is not for: %+v", d)
	}
	if d := e.Classify(t.Context(), writer("mcp.ok.x")); d.Behavior != tool.Ask {
		t.Errorf("nobody answers there, and yet: %+v", d)
	}
}

// TestACanceledCallDoesNotWaitForTheClassifier, and its processes end.
func TestACanceledCallDoesNotWaitForTheClassifier(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no process groups")
	}
	config := classifiers(t, "silence", policy.ClassifierConfig{Timeout: time.Minute})["command"]
	pidFile := filepath.Join(t.TempDir(), "pid")
	config.Env = append(config.Env, "PID_FILE="+pidFile)
	e := compile(t, policy.Settings{Classifier: policy.NewClassifier(config)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan tool.PermissionDecision)
	go func() { done <- e.Classify(ctx, writer("mcp.x.y")) }()
	var pid int
	for deadline := time.Now().Add(time.Minute); pid == 0 && time.Now().Before(deadline); runtime.Gosched() {
		if text, err := os.ReadFile(pidFile); err == nil {
			if _, err := fmt.Sscan(string(text), &pid); err != nil {
				pid = 0
			}
		}
	}
	cancel()
	if d := <-done; d.Behavior != tool.Ask {
		t.Errorf("%+v", d)
	}
	for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
		if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err != nil || strings.Contains(string(state), ") Z ") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d outlives the question", pid)
		}
	}
}

func TestClassifierProblems(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]policy.ClassifierConfig{
		"either a command or a url": {Command: []string{"a"}, URL: "http://x/"},
		"no address":                {URL: "ftp://x/"},
		"the program is empty":      {Command: []string{""}},
		"timeout":                   {Command: []string{"a"}, Timeout: time.Hour},
		"min_confidence":            {Command: []string{"a"}, MinConfidence: 1.5},
		"match":                     {Command: []string{"a"}, Match: []string{"[x]"}},
	} {
		if err := c.Problems(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
