//go:build e2e && unix

package code_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// A command that is ended is a failure that carries what it wrote by then.
func TestRunCommandEnds(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	check := func(err error, class tool.ErrorClass, ending string) {
		t.Helper()
		var f *tool.Failure
		if !errors.As(err, &f) || f.Class != class || !f.OutcomeUnknown || !strings.Contains(f.Detail, `"ending":"`+ending+`"`) ||
			!strings.Contains(f.Detail, `"stdout":"partial\n"`) {
			t.Errorf("%v, detail %s", err, f.Detail)
		}
	}
	const script = `{"argv":["sh","-c","trap '' TERM; echo partial; touch there; sleep 300 & wait; sleep 300"]`
	_, _, err := r.execute(t.Context(), script+`,"timeout_ms":6000}`, nil)
	check(err, tool.ClassTimeout, "timed_out")
	if err := os.Remove(filepath.Join(r.root, "there")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		again := time.NewTicker(10 * time.Millisecond)
		defer again.Stop()
		for range again.C {
			if _, err := os.Stat(filepath.Join(r.root, "there")); err == nil {
				cancel()
				return
			}
		}
	}()
	_, _, err = r.execute(ctx, script+`}`, nil)
	check(err, tool.ClassCanceled, "canceled")
}
