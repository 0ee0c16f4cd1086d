package search_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
)

func TestPutReplacesAndRemoveForgets(t *testing.T) {
	t.Parallel()
	x := search.New(search.Options{})
	weather := []search.Document{
		{ID: "mcp.sky.forecast", Name: "forecast", Description: "The weather of the next days.", Schema: json.RawMessage(`{"properties":{"city":{}}}`)},
		{ID: "mcp.sky.alerts", Name: "alerts", Description: "Storm warnings."},
	}
	x.Put(search.Server{Name: "sky"}, weather)
	x.Put(search.Server{Name: "git"}, []search.Document{{ID: "mcp.git.commit", Name: "commit", Description: "Records changes."}})
	if got := find(x, "weather in a city"); !slices.Equal(got, []string{"mcp.sky.forecast"}) {
		t.Errorf("weather: %q", got)
	}
	x.Put(search.Server{Name: "sky"}, weather[1:])
	if got := find(x, "weather in a city"); len(got) != 0 {
		t.Errorf("replaced, and still found: %q", got)
	}
	if got := find(x, "storm"); !slices.Equal(got, []string{"mcp.sky.alerts"}) {
		t.Errorf("storm: %q", got)
	}
	x.Remove("sky")
	if got := find(x, "storm"); len(got) != 0 || x.Len() != 1 {
		t.Errorf("removed, and still found: %q, %d tools", got, x.Len())
	}
	if got := find(x, "commit"); !slices.Equal(got, []string{"mcp.git.commit"}) {
		t.Errorf("commit: %q", got)
	}
}

func TestNamesForgiveCaseAndSeparators(t *testing.T) {
	t.Parallel()
	x := search.New(search.Options{})
	x.Put(search.Server{Name: "git-lab"}, []search.Document{{ID: "mcp.git-lab.fork_repo", Name: "fork_repo"}})
	x.Put(search.Server{Name: "hub"}, []search.Document{{ID: "mcp.hub.forkRepo", Name: "forkRepo"}})
	for name, want := range map[string][]string{
		"Fork Repo":             {"mcp.git-lab.fork_repo", "mcp.hub.forkRepo"},
		"MCP.git_lab.FORK-REPO": {"mcp.git-lab.fork_repo"},
		"gitlab__fork_repo":     {"mcp.git-lab.fork_repo"},
		"nothing":               nil,
		"":                      nil,
	} {
		if got := x.Names(name, nil); !slices.Equal(got, want) {
			t.Errorf("Names(%q) = %q, want %q", name, got, want)
		}
	}
	hub := search.NewScope(func(id string) bool { return id == "mcp.hub.forkRepo" })
	if got := x.Names("fork repo", hub); !slices.Equal(got, []string{"mcp.hub.forkRepo"}) {
		t.Errorf("hidden tools are named: %q", got)
	}
	if got := x.Nearest("fork_rpo", 1, hub); !slices.Equal(got, []string{"mcp.hub.forkRepo"}) {
		t.Errorf("Nearest = %q", got)
	}
}

func find(x *search.Index, text string) []string {
	return ids(x.Search(context.Background(), search.Query{Text: text}))
}

func ids(a search.Answer) []string {
	var out []string
	for _, h := range a.Hits {
		out = append(out, h.ID)
	}
	return out
}
