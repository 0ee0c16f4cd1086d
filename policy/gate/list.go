package gate

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// Asked is a call that a decision asks about.
type Asked struct {
	Request  *policy.Request
	Decision *tool.PermissionDecision
	Times    int // how many equal calls the answer is for; 0 is 1
}

// Alike is equal for calls that one question can be about: of one tool, and asked about for one reason.
func (a Asked) Alike() string {
	key, err := json.Marshal([]any{a.Request.Tool.Name, a.Decision.Reason["message"], a.Decision.RuleRefs,
		a.Request.CWD})
	if err != nil {
		return string(a.Request.Invocation) // like no other
	}
	return string(key)
}

// AskEach is the answer to a ListForm by which a person wants to be asked about each call.
const AskEach = "ask_each"

// ListMessage is the question about calls that are Alike, in plain text: a line for each call, with
// its arguments and what it is aimed at. What Message says of the hub's words and those of
// strangers holds here, too.
func ListMessage(calls []Asked) string {
	first := calls[0]
	var b strings.Builder
	times := 0
	for _, c := range calls {
		times += max(c.Times, 1)
	}
	fmt.Fprintf(&b, "mcp-toolhub asks: may %s (server %s) run %d times, in one batch?\n",
		ToolName(first.Request.Tool.Name),
		Plain(first.Request.Tool.Server, maxShownWords), times)
	for i, c := range calls {
		brief, whole := shortened(Mask(c.Request.Input, c.Request.Facts), c.Request.Targets)
		fmt.Fprintf(&b, "%d: %s", i+1, brief)
		if c.Times > 1 {
			fmt.Fprintf(&b, "; %d times", c.Times)
		}
		for j := range c.Request.Targets[:min(len(c.Request.Targets), maxListedTargets)] {
			b.WriteString("; aimed at " + TargetLine(&c.Request.Targets[j]))
		}
		if more := len(c.Request.Targets) - maxListedTargets; more > 0 {
			fmt.Fprintf(&b, "; and at %d more", more)
		}
		if !whole {
			b.WriteString("; shortened")
		}
		b.WriteByte('\n')
	}
	if message, ok := first.Decision.Reason["message"].(string); ok {
		fmt.Fprintf(&b, "Why: %s\n", Plain(message, maxShownWords))
	}
	if f := first.Request.Facts; f != nil {
		fmt.Fprintf(&b, "Risk: %s; %s\n", f.Risk.Value, effect(f))
	}
	if a, _ := tool.AgentOf(first.Request.Meta); a != nil { // which is that of the batch
		fmt.Fprintf(&b, "%s: %s\n", callersWords, AgentLine(a))
	}
	b.WriteString("The answer is for all of them. To see each call whole, choose to be asked about each.")
	return b.String()
}

const maxListedTargets = 3 // of a call

// effect says what a tool of these facts may do.
func effect(f *facts.Facts) string {
	text := "it may change things"
	switch {
	case f.LooksReadOnly():
		return "it looks as if it only reads: mcp-toolhub policy suggest"
	case f.ReadOnly.Value:
		text = "it only reads"
	case f.Destructive.Value:
		text = "it may remove or replace what is there"
	}
	return text + " (" + string(f.ReadOnly.Origin) + ")"
}

// ListForm is the requestedSchema for a ListMessage, as Form is for a Message. No answer to a list is remembered.
func ListForm(revision string) json.RawMessage {
	return form(revision, []choice{{string(policy.AllowOnce), "Allow all once"},
		{string(policy.DenyOnce), "Deny all once"},
		{AskEach, "Ask about each"}})
}

// choice is an answer of a form.
type choice struct {
	Value string `json:"const"`
	Title string `json:"title"`
}

// form returns a requestedSchema with these choices and nothing else.
func form(revision string, choices []choice) json.RawMessage {
	answer := map[string]any{"type": "string", "title": "Answer"}
	if revision >= "2025-11-25" {
		answer["oneOf"] = choices
	} else {
		var values, names []string
		for _, c := range choices {
			values, names = append(values, c.Value), append(names, c.Title)
		}
		answer["enum"], answer["enumNames"] = values, names
	}
	text, err := rawjson.Encode(map[string]any{"type": "object", "required": []string{"answer"},
		"properties": map[string]any{"answer": answer}})
	if err != nil {
		return nil // cannot be: nothing in it but strings
	}
	return text
}
