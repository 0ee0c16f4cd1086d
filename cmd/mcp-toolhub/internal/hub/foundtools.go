package hub

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// searchAnswer is what people get to see of the answer to a search.
type searchAnswer struct {
	Matches []struct {
		Name, Summary string
		Score         float64
		Why           []string
	}
	Pending []string                         `json:"pending_providers"`
	Down    []struct{ Server, Needs string } `json:"unavailable_providers"`
	Missing []struct {
		Name    string
		Nearest []string
	} `json:"missing_names"`
	Notes []string
	Next  struct{ Hint string } `json:"next_action"`

	Structured json.RawMessage // as it was written
}

// RefusedSearch is the text of a search whose result is an error.
type RefusedSearch string

func (r RefusedSearch) Error() string { return string(r) }

// ReadSearch reads the result of a search. Its error is a refusedSearch where that is one.
func ReadSearch(result json.RawMessage) (answer searchAnswer, err error) {
	if isError, _ := rawjson.Get(result, "isError"); string(isError) == "true" {
		return answer, RefusedSearch(hidden.Escape(strings.TrimSpace(ResultText(result))))
	}
	answer.Structured, _ = rawjson.Get(result, "structuredContent")
	if err := json.Unmarshal(answer.Structured, &answer); err != nil {
		return answer, fmt.Errorf("search: the answer cannot be read: %w", err)
	}
	return answer, nil
}

// Unknown says which names no tool has.
func (a *searchAnswer) Unknown() (all []string) {
	for _, m := range a.Missing {
		all = append(all, fmt.Sprintf("no tool is called %q; the nearest: %s", m.Name,
			hidden.Escape(strings.Join(m.Nearest, ", "))))
	}
	return all
}

// Away says which servers have not been searched.
func (a *searchAnswer) Away() (all []string) {
	if len(a.Pending) > 0 {
		all = append(all, "not answering yet: "+hidden.Escape(strings.Join(a.Pending, ", ")))
	}
	for _, d := range a.Down {
		all = append(all, hidden.Escape(d.Server)+" needs "+hidden.Escape(d.Needs))
	}
	return all
}
