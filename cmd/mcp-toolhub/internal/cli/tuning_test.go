package cli

import (
	"encoding/json"
	"maps"
	"os"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
)

// tuning holds values that no config can set, for hubs of tests. What is zero stays as it is. configText takes them
// under the key tuning, at the top and in the entries of servers, and keeps them under $schema.
type tuning struct {
	RetryMin, RetryMax           time.Duration
	RetryBudget                  int
	FirstListWithin, SessionIdle time.Duration
	InputTimeout                 time.Duration
	JournalFiles                 int
	Servers                      map[string]serverTuning
}

type serverTuning struct {
	Connect, List time.Duration
}

// taken returns the config without its tunings, which are under $schema then.
func taken(all, servers map[string]any) map[string]any {
	all, servers = maps.Clone(all), maps.Clone(servers)
	top, tunes := all["tuning"].(tuning)
	delete(all, "tuning")
	for id, entry := range servers {
		entry, _ := entry.(map[string]any)
		own, is := entry["tuning"].(serverTuning)
		if !is {
			continue
		}
		if top.Servers == nil {
			top.Servers = map[string]serverTuning{}
		}
		entry = maps.Clone(entry)
		delete(entry, "tuning")
		servers[id], top.Servers[id], tunes = entry, own, true
	}
	all["mcpServers"] = servers
	if tunes {
		all["$schema"] = top
	}
	return all
}

// tuned sets what the config of s has for it.
func tuned(s *config.Settings) {
	var file struct {
		Schema json.RawMessage `json:"$schema"`
	}
	var values tuning
	text, err := os.ReadFile(s.Path)
	if err != nil || json.Unmarshal(text, &file) != nil || json.Unmarshal(file.Schema, &values) != nil {
		return
	}
	set(&s.Upstream.RetryMin, values.RetryMin)
	set(&s.Upstream.RetryMax, values.RetryMax)
	set(&s.Upstream.RetryBudget, values.RetryBudget)
	set(&s.Upstream.FirstListWithin, values.FirstListWithin)
	set(&s.Downstream.HTTP.SessionIdle, values.SessionIdle)
	set(&s.Downstream.InputTimeout, values.InputTimeout)
	set(&s.Journal.MaxFiles, values.JournalFiles)
	for i := range s.Upstream.Servers {
		server := &s.Upstream.Servers[i]
		own := values.Servers[server.ID]
		set(&server.Timeouts.Connect, own.Connect)
		set(&server.Timeouts.List, own.List)
	}
}

func set[V comparable](to *V, value V) {
	var zero V
	if value != zero {
		*to = value
	}
}
