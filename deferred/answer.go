package deferred

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// searchResult is the structured content of an answer. Some clients show their model that and not the text.
type searchResult struct {
	Matches       []match       `json:"matches"`
	More          []string      `json:"more,omitempty"` // names of tools that fit less
	TotalDeferred int           `json:"total_deferred_tools"`
	Pending       []string      `json:"pending_providers"`               // they will answer soon
	Unavailable   []unavailable `json:"unavailable_providers,omitempty"` // they will not
	Missing       []missing     `json:"missing_names,omitempty"`
	Notes         []string      `json:"notes,omitempty"`
	Next          nextAction    `json:"next_action"`
}

// match is a tool that can be called at once. It has a signature and a summary, or the declaration.
type match struct {
	Name        string          `json:"name"`
	Ref         string          `json:"selection_ref"`
	Signature   string          `json:"signature,omitempty"`
	Summary     string          `json:"summary,omitempty"`
	Declaration json.RawMessage `json:"declaration,omitempty"`

	// For people:
	Score float64  `json:"score,omitempty"`
	Why   []string `json:"why,omitempty"` // the fields that matched, the most telling first
}

// signed returns the match of a tool that is called name, with its signature and without a selection_ref.
func signed(name string, l *tool.Listed) match {
	return match{Name: name, Signature: typed(l.Tool.InputSchema), Summary: summaryOf(l)}
}

// cost is about how many tokens m costs a model, in either form of the answer.
func (m *match) cost() int {
	return tokensOf([]byte(m.Name)) + tokensOf([]byte(m.Signature)) + tokensOf([]byte(m.Summary)) +
		tokensOf(m.Declaration) + refCost
}

// refCost is about how many tokens a selection_ref costs, with the names of the members.
const refCost = 40

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
	r := searchResult{Matches: make([]match, 0, len(f.hits)), More: f.more, TotalDeferred: len(f.surface.Deferred),
		Pending: append([]string{}, f.pending...), Unavailable: f.down, Missing: f.missing, Notes: f.notes,
		Next: f.next()}
	for _, h := range f.hits {
		r.Matches = append(r.Matches, h.told)
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
	if len(a.Matches) == 0 && len(a.More) > 0 {
		fmt.Fprintf(&b, "Nothing fits among %d deferred tools. The nearest are (select:NAME gets one): %s.", a.TotalDeferred,
			strings.Join(a.More, ", "))
	} else if len(a.Matches) == 0 {
		fmt.Fprintf(&b, "No tool was found among %d deferred ones.", a.TotalDeferred)
	} else {
		fmt.Fprintf(&b, "Call one with %s: its name, its arguments, its selection_ref.\n", callName)
	}
	for _, m := range a.Matches {
		if m.Declaration != nil {
			fmt.Fprintf(&b, "\n%s\nselection_ref: %s\n", m.Declaration, m.Ref)
		} else {
			fmt.Fprintf(&b, "\n%s%s\n%s\nselection_ref: %s\n", m.Name, m.Signature, m.Summary, m.Ref)
		}
	}
	if len(a.Matches) > 0 && len(a.More) > 0 {
		fmt.Fprintf(&b, "\nMay fit, too (select:NAME gets one): %s\n", strings.Join(a.More, ", "))
	}
	for _, m := range a.Missing {
		fmt.Fprintf(&b, "\nNo tool is called %q.", oneLine(m.Name, maxSummary))
		if len(m.Nearest) > 0 {
			fmt.Fprintf(&b, " The nearest: %s.", strings.Join(m.Nearest, ", "))
		}
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
	line, _, _ := strings.Cut(strings.TrimSpace(rawjson.Text(l.Unnamed(), "description")), "\n")
	return oneLine(line, maxSummary)
}
