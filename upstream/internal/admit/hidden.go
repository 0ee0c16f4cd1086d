package admit

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

const codeHiddenText = "hidden_text"

// checkHidden looks for hidden characters in the descriptions and titles of a declaration, also within its schemas.
func (a *admission) checkHidden(c *candidate) {
	if c.refused != nil || isPrintable(c.declaration) {
		return
	}
	clean, found := withoutHidden(c.declaration)
	if len(found) == 0 {
		return
	}
	what := fmt.Sprintf("hidden characters in its descriptions or titles (%s)", hidden.Names(found))
	switch a.cfg.Limits.HiddenText {
	case settings.HiddenStrip:
		c.declaration = clean
		c.repaired("declaration", "there were %s; they were taken out", what)
	case settings.HiddenRefuse:
		c.refuse(codeHiddenText, "there are %s: take them out on the server, or set %s to %s", what,
			settings.LimitHiddenText,
			settings.HiddenStrip)
	default:
		a.findings = append(a.findings, tool.Finding{About: c.name, Code: codeHiddenText,
			Reason: fmt.Sprintf("%s: a model reads what a person does not see. Look at it, or set %s to %s or %s", what,
				settings.LimitHiddenText,
				settings.HiddenStrip, settings.HiddenRefuse)})
	}
}

// isPrintable reports whether a valid declaration has printable ASCII alone, also in its escapes.
// Nearly all have.
func isPrintable(declaration []byte) bool {
	for i, b := range declaration {
		if b > '~' || b == '\\' && bytes.IndexByte([]byte("bfru"), declaration[i+1]) >= 0 {
			return false
		}
	}
	return true
}

// checkInstructions looks for hidden characters in instructions. Clients get instructions without them in any case.
func (a *admission) checkInstructions(text string) string {
	found := hidden.Find(text)
	if len(found) == 0 {
		return text
	}
	a.findings = append(a.findings, tool.Finding{About: "instructions", Code: codeHiddenText,
		Reason: fmt.Sprintf("hidden characters in the server's instructions (%s): clients get them without",
			hidden.Names(found))})
	if a.cfg.Limits.HiddenText == settings.HiddenRefuse {
		return ""
	}
	return text
}

// withoutHidden returns a valid declaration without the hidden characters of its descriptions and titles, and these.
func withoutHidden(declaration []byte) (clean []byte, found []rune) {
	key, done := "", 0 // the member whose value comes next; how many bytes are in clean
	for i := 0; i < len(declaration); i++ {
		switch declaration[i] {
		case '{', '[':
			key = ""
		case '"':
			end := rawjson.SkipString(declaration, i)
			text, _ := rawjson.String(declaration[i:end])
			isKey := bytes.HasPrefix(bytes.TrimLeft(declaration[end:], " \t\r\n"), []byte(":"))
			if here := hidden.Find(text); !isKey && len(here) > 0 && (key == "description" || key == "title") {
				found = append(found, here...)
				clean = append(append(clean, declaration[done:i]...), rawjson.Quote(hidden.Strip(text))...)
				done = end
			}
			key = ""
			if isKey {
				key = text
			}
			i = end - 1
		}
	}
	slices.Sort(found)
	return append(clean, declaration[done:]...), slices.Compact(found)
}
