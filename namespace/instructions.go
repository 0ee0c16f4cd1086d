package namespace

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Bounds of instructions. They go into the context of every client's model at the start of each session.
const (
	// characters of a surface's, its headline included: Claude Code cuts what comes after some
	// 4,100
	maxInstructions = 4000
	maxHeadline     = 1000 // of these, for the names of servers
	// is left to each of very many servers, with its name; the last ones get nothing then
	minServerInstructions = 64
	maxDirect             = 16 << 10 // characters of a direct view's: they are its server's own
	maxSanitized          = 64 << 10 // bytes of what a server says, before anything is removed
)

// cutMark ends instructions that were cut.
const cutMark = " … [cut]"

// headline returns a sentence that names all servers. Codex shows the first line of instructions and nothing else.
func headline(origins []*origin) string {
	var names []string
	length, more := 0, 0
	for _, o := range origins {
		switch {
		case !o.pending && len(o.tools)+len(o.prompts)+len(o.resources)+len(o.templates) == 0: // disabled, for instance
		case length > maxHeadline:
			more++
		default:
			names = append(names, o.server)
			length += len(o.server) + len(", ")
		}
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if len(names) == 0 {
		return ""
	}
	last := len(names) - 1
	if last > 0 {
		names = []string{strings.Join(names[:last], ", "), names[last]}
	}
	return "This hub serves the tools of " + strings.Join(names, " and ") + "."
}

// instruct puts the servers' instructions together, in at most room characters. Each is indented
// under a line that names its server, so that no server can write in another's name. Where all do
// not fit, the longest are cut: nobody crowds out another.
func instruct(origins []*origin, room int) string {
	var shares []string
	for _, o := range origins {
		if o.instructions != "" {
			shares = append(shares, cut(share(o, room), room))
		}
	}
	leftOut := ""
	limit := fairLimit(shares, room)
	if limit < minServerInstructions {
		limit = minServerInstructions
		const note = "\n\n(Instructions of %d more servers are left out.)"
		fit := (room - len(note) - 8) / (limit + len(blankLine))
		leftOut = fmt.Sprintf(note, len(shares)-fit)
		shares = shares[:fit]
	}
	for i := range shares {
		shares[i] = cut(shares[i], limit)
	}
	return strings.Join(shares, blankLine) + leftOut
}

const blankLine = "\n\n"

// share returns o's instructions, of at most limit characters, under a line that names o.
func share(o *origin, limit int) string {
	kind := "Server"
	if o.source != tool.SourceMCP {
		kind = "Toolset"
	}
	lines := strings.Split(cut(o.instructions, limit), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = "  " + line
		}
	}
	return fmt.Sprintf("%s %s:\n%s", kind, o.server, strings.Join(lines, "\n"))
}

// fairLimit returns the greatest length to which all texts can be cut so that they fit into room together.
func fairLimit(texts []string, room int) int {
	lengths := make([]int, len(texts))
	for i, t := range texts {
		lengths[i] = utf8.RuneCountInString(t)
	}
	low, high := 0, room
	for low < high {
		middle, total := (low+high+1)/2, 0
		for _, n := range lengths {
			total += min(n, middle) + len(blankLine)
		}
		if total-len(blankLine) <= room {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

// cut returns text with at most limit characters, its mark included. limit is minServerInstructions or more.
func cut(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	kept := []rune(text)[:limit-utf8.RuneCountInString(cutMark)]
	return strings.TrimRight(string(kept), " \n\t") + cutMark
}

// sanitized returns text without what people do not see or terminals obey: controls other than line breaks and tabs,
// characters that are not shown.
func sanitized(text string) string {
	text = text[:min(len(text), maxSanitized)] // what is left of a character that is cut in two is removed below
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n").Replace(text)
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if broken := r == utf8.RuneError && size == 1; !broken && (r == '\n' || r == '\t' || !hidden.Is(r)) {
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	return strings.TrimSpace(b.String())
}
