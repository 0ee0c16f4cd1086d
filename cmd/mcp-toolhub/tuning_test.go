package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
)

// tuning holds values that no config can set, for hubs of tests. What is zero stays as it is.
type tuning struct {
	RetryMin, RetryMax           time.Duration
	RetryBudget                  int
	FirstListWithin, SessionIdle time.Duration
}

const tuningFile = "tuning.json"

// tune gives the hubs whose config is in dir these values.
func tune(t testing.TB, dir string, values tuning) {
	t.Helper()
	text, err := json.Marshal(values)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, tuningFile), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// tuned sets what tune has written beside the config of s.
func tuned(s *config.Settings) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(s.Path), tuningFile))
	if err != nil {
		return
	}
	var values tuning
	if err := json.Unmarshal(text, &values); err != nil {
		panic(err)
	}
	set(&s.Upstream.RetryMin, values.RetryMin)
	set(&s.Upstream.RetryMax, values.RetryMax)
	set(&s.Upstream.RetryBudget, values.RetryBudget)
	set(&s.Upstream.FirstListWithin, values.FirstListWithin)
	set(&s.Downstream.HTTP.SessionIdle, values.SessionIdle)
}

func set[V comparable](to *V, value V) {
	var zero V
	if value != zero {
		*to = value
	}
}
