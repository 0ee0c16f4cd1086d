package namespace

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Bounds of instructions, in bytes. They go into the context of every client's model at the start of each session.
const (
	maxServerInstructions = 4 << 10  // of one server beside others
	minServerInstructions = 64       // of what is left to each of very many servers; then the last ones get nothing
	maxInstructions       = 16 << 10 // of a surface, without labels and indents
	maxSanitized          = 64 << 10 // of what a server says, before anything is removed
	maxSequence           = 1 << 10  // of a terminal's escape sequence
)

// cutMark ends instructions that were cut.
const cutMark = " … [cut]"

// instruct puts the servers' instructions together. Each is indented under a line that names its server, so that no
// server can write in another's name; those of the only server of a native surface stand as they are. Where all do not
// fit, the longest are cut: nobody crowds out another.
func instruct(origins []*origin, bare bool) string {
	var texts []string
	var speakers []*origin
	for _, o := range origins {
		if o.instructions != "" {
			texts, speakers = append(texts, o.instructions), append(speakers, o)
		}
	}
	switch {
	case len(texts) == 0:
		return ""
	case bare && len(origins) == 1:
		return cut(texts[0], maxInstructions)
	}
	limit := max(fairLimit(texts), minServerInstructions)
	var b strings.Builder
	for i, o := range speakers {
		if i*minServerInstructions >= maxInstructions {
			fmt.Fprintf(&b, "\n\n(Instructions of %d more servers are left out.)", len(speakers)-i)
			break
		}
		if i > 0 {
			b.WriteString("\n\n")
		}
		kind := "Server"
		if o.source != tool.SourceMCP {
			kind = "Toolset"
		}
		fmt.Fprintf(&b, "%s %s:", kind, o.server)
		for line := range strings.SplitSeq(cut(texts[i], limit), "\n") {
			b.WriteByte('\n')
			if line != "" {
				b.WriteString("  ")
				b.WriteString(line)
			}
		}
	}
	return b.String()
}

// fairLimit returns the greatest length to which all texts can be cut so that they fit together.
func fairLimit(texts []string) int {
	fits := func(limit int) bool {
		total := 0
		for _, t := range texts {
			total += min(len(t), limit)
		}
		return total <= maxInstructions
	}
	low, high := 0, maxServerInstructions
	for low < high {
		if middle := (low + high + 1) / 2; fits(middle) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

// cut returns text with at most limit bytes, its mark included, and no half character. limit is minServerInstructions or
// more.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	at := limit - len(cutMark)
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return strings.TrimRight(text[:at], " \n\t") + cutMark
}

// sanitized returns text without what people do not see or terminals obey: escape sequences, controls other than line
// breaks and tabs, characters that are not shown.
func sanitized(text string) string {
	text = text[:min(len(text), maxSanitized)] // what is left of a character that is cut in two is removed below
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n").Replace(text)
	var b strings.Builder
	for i := 0; i < len(text); {
		if n := escapeSequence(text[i:]); n > 0 {
			i += n
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if broken := r == utf8.RuneError && size == 1; !broken && (r == '\n' || r == '\t' || !isHidden(r)) {
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	return strings.TrimSpace(b.String())
}

// escapeSequence returns the length of the terminal's escape sequence (ECMA-48) with which text begins, or 0.
func escapeSequence(text string) int {
	lead, kind := 0, byte(0)
	switch {
	case strings.HasPrefix(text, "\x1b"):
		if lead = 1; len(text) > 1 {
			lead, kind = 2, text[1]
		}
	case strings.HasPrefix(text, "\u009b"): // the one-character forms
		lead, kind = 2, '['
	case strings.HasPrefix(text, "\u009d"):
		lead, kind = 2, ']'
	default:
		return 0
	}
	switch {
	case kind == '[':
		n := lead
		for n < len(text) && text[n] >= 0x20 && text[n] < 0x40 {
			n++
		}
		if n < len(text) && text[n] >= 0x40 && text[n] < 0x7f {
			n++
		}
		return n
	case strings.IndexByte("]PX^_", kind) >= 0 && kind != 0: // a string, up to its terminator; one without end is not followed
		for _, end := range [...]string{"\a", "\x1b\\", "\u009c"} {
			line, _, _ := strings.Cut(text[lead:min(len(text), lead+maxSequence)], "\n")
			if at := strings.Index(line, end); at >= 0 {
				return lead + at + len(end)
			}
		}
		return lead
	case kind >= 0x20 && kind < 0x7f: // intermediates, then the final character
		n := lead - 1
		for n < len(text) && text[n] >= 0x20 && text[n] < 0x30 {
			n++
		}
		if n < len(text) && text[n] >= 0x30 && text[n] < 0x7f {
			n++
		}
		return n
	}
	return 1
}
