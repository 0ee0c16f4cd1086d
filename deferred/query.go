package deferred

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// The kinds of queries.
const (
	queryKeyword = "keyword"
	querySelect  = "select"
	queryRegex   = "regex"
)

// Bounds of a query.
const (
	defaultLimit = 25
	maxLimit     = 50
	maxSelected  = 50
	maxMissing   = 5 // names that nobody has for which the nearest are looked for
)

// query is a parsed query of the search.
type query struct {
	kind    string
	words   string          // of a keyword query
	names   []string        // of a select query
	pattern *search.Pattern // of a regex query
	servers []string
	limit   int
}

// readQuery parses the arguments of the search. The error is a *tool.Failure.
func readQuery(arguments json.RawMessage) (query, error) {
	var a struct {
		Query   string
		Servers []string
		Limit   *int
	}
	if err := json.Unmarshal(arguments, &a); err != nil {
		return query{}, refused(fmt.Sprintf("the arguments do not fit %s's inputSchema", SearchName))
	}
	q := query{kind: queryKeyword, limit: defaultLimit}
	for _, s := range a.Servers {
		q.servers = append(q.servers, strings.ToLower(strings.TrimSpace(s))) // as ids are
	}
	if a.Limit != nil {
		q.limit = min(max(*a.Limit, 1), maxLimit)
	}
	text := strings.TrimSpace(a.Query)
	word, rest, found := strings.Cut(text, ":")
	switch word = strings.ToLower(strings.TrimSpace(word)); {
	case found && word == querySelect:
		q.kind = querySelect
		return q, q.readNames(rest)
	case found && word == queryRegex:
		q.kind = queryRegex
		return q, q.readPattern(rest)
	case text == "":
		return q, refused("query is empty: write what you want to do")
	}
	q.words = text
	return q, nil
}

func (q *query) readNames(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			q.names = append(q.names, name)
		}
	}
	switch {
	case len(q.names) == 0:
		return refused("select: needs names: select:NAME,NAME")
	case len(q.names) > maxSelected:
		return refused(fmt.Sprintf("select: takes %d names at most: ask in parts", maxSelected))
	}
	return nil
}

func (q *query) readPattern(text string) error {
	text = strings.TrimSpace(text)
	if text == "" {
		return refused("regex: needs a pattern: regex:PATTERN")
	}
	pattern, err := search.ReadPattern("(?i)" + text)
	if err != nil {
		return refused(err.Error())
	}
	q.pattern = pattern
	return nil
}

func refused(message string) error {
	return &tool.Failure{Class: tool.ClassInvalidArguments, Message: message}
}
