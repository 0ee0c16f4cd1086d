package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

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

	structured json.RawMessage // as it was written
}

// readSearch reads the result of a search.
func readSearch(result json.RawMessage) (answer searchAnswer, err error) {
	if isError, _ := rawjson.Get(result, "isError"); string(isError) == "true" {
		return answer, &exitError{exitToolError, errors.New(printable(strings.TrimSpace(resultText(result))))}
	}
	answer.structured, _ = rawjson.Get(result, "structuredContent")
	if err := json.Unmarshal(answer.structured, &answer); err != nil {
		return answer, failed(fmt.Errorf("search: the answer cannot be read: %w", err))
	}
	return answer, nil
}

// unknown says which names no tool has.
func (a *searchAnswer) unknown() (all []string) {
	for _, m := range a.Missing {
		all = append(all, fmt.Sprintf("no tool is called %q; the nearest: %s", m.Name,
			printable(strings.Join(m.Nearest, ", "))))
	}
	return all
}

// away says which servers have not been searched.
func (a *searchAnswer) away() (all []string) {
	if len(a.Pending) > 0 {
		all = append(all, "not answering yet: "+printable(strings.Join(a.Pending, ", ")))
	}
	for _, d := range a.Down {
		all = append(all, printable(d.Server)+" needs "+printable(d.Needs))
	}
	return all
}
