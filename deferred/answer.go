package deferred

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// searchResult is a tool_search_result.
type searchResult struct {
	Object        string     `json:"object"`
	SchemaVersion string     `json:"schema_version"`
	Query         string     `json:"query"`
	QueryType     string     `json:"query_type"`
	Matches       []match    `json:"matches"`
	Neighbours    []string   `json:"neighbours"`
	TotalDeferred int        `json:"total_deferred_tools"`
	Pending       []string   `json:"pending_providers"` // they will answer soon
	Missing       []missing  `json:"missing_names"`
	Notes         []string   `json:"notes,omitempty"`
	Next          nextAction `json:"next_action"`

	Unavailable []unavailable `json:"unavailable_providers,omitempty"` // they will not
}

// match is one tool in a searchResult.
type match struct {
	Name        string          `json:"name"`
	ToolID      tool.Name       `json:"tool_id"`
	Server      string          `json:"server"`
	Score       float64         `json:"score"`
	Why         []string        `json:"why"` // the fields that matched, the most telling first
	State       string          `json:"loading_state"`
	Ref         string          `json:"selection_ref"`
	Signature   string          `json:"signature,omitempty"`
	Summary     string          `json:"summary,omitempty"`
	Declaration json.RawMessage `json:"declaration,omitempty"`
}

// nextAction tells the caller what to do next.
type nextAction struct {
	Action string   `json:"action"` // "call", "select", "wait" or "rephrase"
	Tool   string   `json:"tool,omitempty"`
	Names  []string `json:"names,omitempty"`
	Hint   string   `json:"hint,omitempty"`
}

// maxSummary bounds a tool's summary, in bytes.
const maxSummary = 120

func (f *found) answer() searchResult {
	r := searchResult{Object: "tool_search_result", SchemaVersion: tool.SchemaVersion, Query: f.query.text,
		QueryType: f.query.kind,
		Matches:   make([]match, 0, len(f.hits)), Neighbours: append([]string{}, f.neighbours...),
		TotalDeferred: len(f.surface.Deferred),
		Pending:       append([]string{}, f.pending...), Unavailable: f.down,
		Missing: append([]missing{}, f.missing...),
		Notes:   f.notes, Next: f.next()}
	for _, h := range f.hits {
		name := f.loader.reserved.shownName(h.listed)
		m := match{Name: name, ToolID: h.listed.Tool.Name, Server: h.listed.Tool.Server,
			Score: math.Round(h.score*1000) / 1000,
			Why:   append([]string{}, h.why...), State: "loaded", Ref: h.ref}
		if h.deferred && h.declaration == nil {
			m.State = "discoverable"
		}
		switch {
		case h.declaration != nil:
			m.Declaration = h.declaration
		case f.detail != detailNames:
			m.Signature = typed(name, h.listed.Tool.InputSchema)
			m.Summary = summaryOf(h.listed)
		}
		r.Matches = append(r.Matches, m)
	}
	return r
}

func (f *found) next() nextAction {
	switch {
	case len(f.hits) > 0:
		return nextAction{Action: "call", Tool: string(callName)}
	case f.stray:
		return nextAction{Action: "rephrase", Tool: string(SearchName), Hint: "name servers that are there, or none"}
	case len(f.missing) > 0:
		var names []string
		for _, m := range f.missing {
			names = append(names, m.Nearest...)
		}
		if len(names) > 0 {
			return nextAction{Action: "select", Tool: string(SearchName), Names: names,
				Hint: "these names are the nearest"}
		}
	}
	if len(f.pending) > 0 {
		return nextAction{Action: "wait", Tool: string(SearchName),
			Hint: "some servers have not answered yet: search again in a moment"}
	}
	hint := "use other words, fewer of them, or none of servers; if that finds nothing, there is no such tool here"
	if len(f.down) > 0 {
		hint += ", or it is one of a server that does not work: tell the person what that server needs"
	}
	return nextAction{Action: "rephrase", Tool: string(SearchName), Hint: hint}
}

// result encodes the answer as a result of tools/call, without line breaks between tokens.
func (f *found) result() (json.RawMessage, error) {
	answer := f.answer()
	structured, err := rawjson.Encode(answer)
	if err != nil {
		return nil, err
	}
	out := append([]byte(`{"content":[{"type":"text","text":`), rawjson.Quote(f.text(answer))...)
	out = append(append(out, `}],"structuredContent":`...), structured...)
	return append(out, '}'), nil
}

// text writes the answer for a model that sees only texts.
func (f *found) text(a searchResult) string {
	var b strings.Builder
	if len(a.Matches) == 0 {
		fmt.Fprintf(&b, "No tool was found among %d deferred ones.", a.TotalDeferred)
	} else {
		fmt.Fprintf(&b, "Call a tool with %s: its name, arguments that fit its inputSchema, and its selection_ref.\n",
			callName)
	}
	for _, m := range a.Matches {
		switch {
		case m.Declaration != nil:
			fmt.Fprintf(&b, "\n%s\nselection_ref: %s\n", m.Declaration, m.Ref)
		case m.Signature != "":
			fmt.Fprintf(&b, "\n%s\n  %s\n  selection_ref: %s\n", m.Signature, m.Summary, m.Ref)
		default:
			fmt.Fprintf(&b, "\n%s selection_ref: %s", m.Name, m.Ref)
		}
	}
	for _, m := range a.Missing {
		fmt.Fprintf(&b, "\nNo tool is called %q.", oneLine(m.Name, maxSummary))
		if len(m.Nearest) > 0 {
			fmt.Fprintf(&b, " The nearest: %s.", strings.Join(m.Nearest, ", "))
		}
	}
	if len(a.Neighbours) > 0 {
		fmt.Fprintf(&b, "\nAlso there (select:NAME loads one): %s\n", strings.Join(a.Neighbours, ", "))
	}
	if len(a.Pending) > 0 {
		fmt.Fprintf(&b, "\nNot answering yet: %s\n", strings.Join(a.Pending, ", "))
	}
	for _, u := range a.Unavailable {
		fmt.Fprintf(&b, "\n%s needs %s\n", u.Server, u.Needs)
	}
	for _, n := range a.Notes {
		b.WriteString("\n" + n)
	}
	if a.Next.Hint != "" {
		b.WriteString("\nNext: " + a.Next.Hint + ".")
	}
	return b.String()
}

// summaryOf returns the first line of a tool's description.
func summaryOf(l *tool.Listed) string {
	line, _, _ := strings.Cut(strings.TrimSpace(rawjson.Text(l.Declaration, "description")), "\n")
	return oneLine(line, maxSummary)
}
