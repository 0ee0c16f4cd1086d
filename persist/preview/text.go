package preview

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// Size returns how many characters text takes inside a JSON string: some clients cut results as
// they are written, so what is escaped counts as its escape.
func Size(text []byte) int {
	size := 0
	for i := 0; i < len(text); {
		n, width := charSize(text[i:])
		size += n
		i += width
	}
	return size
}

// charSize returns how many characters the first character of text takes in a JSON string, and how many bytes it has.
func charSize(text []byte) (size, width int) {
	c := text[0]
	switch {
	case c == '"', c == '\\':
		return 2, 1
	case c >= ' ' && c < utf8.RuneSelf:
		return 1, 1
	case c == '\n', c == '\t', c == '\r', c == '\b', c == '\f':
		return 2, 1
	case c < ' ':
		return 6, 1
	}
	r, width := utf8.DecodeRune(text)
	if r == '\u2028' || r == '\u2029' || r == utf8.RuneError && width == 1 {
		return 6, width
	}
	return 1, width
}

// Fit returns how many bytes at the beginning of text are whole characters that take at most limit characters in a JSON
// string.
func Fit(text []byte, limit int) int {
	at := 0
	for at < len(text) {
		size, width := charSize(text[at:])
		if limit -= size; limit < 0 {
			break
		}
		at += width
	}
	return at
}

// fitTail is Fit from the end: it returns where the last characters begin that fit.
func fitTail(text []byte, limit int) int {
	at := len(text)
	for at > 0 {
		_, width := utf8.DecodeLastRune(text[:at])
		size, _ := charSize(text[at-width : at])
		if limit -= size; limit < 0 {
			break
		}
		at -= width
	}
	return at
}

// fits reports whether text takes at most limit characters.
func fits(text []byte, limit int) bool { return Fit(text, limit) == len(text) }

// markSize bounds the line that says what is left out.
const markSize = 140

// cut returns the head and the tail of text with a line between them that says what is left out. It takes at most limit
// characters. Head and tail end at line boundaries where that costs little, and at character boundaries otherwise.
func cut(text []byte, limit int) []byte {
	if fits(text, limit) {
		return text
	}
	room := limit - markSize
	if room < 40 {
		return text[:Fit(text, limit)]
	}
	head := Fit(text, room*2/3)
	if at := bytes.LastIndexByte(text[:head], '\n') + 1; at > head/2 {
		head = at
	}
	tail := max(head, fitTail(text, room-Size(text[:head])))
	if at := bytes.IndexByte(text[tail:], '\n') + 1; at > 0 && at <= (len(text)-tail)/2 {
		tail += at
	}
	out := make([]byte, 0, head+len(text)-tail+markSize)
	out = append(out, text[:head]...)
	if head > 0 && text[head-1] != '\n' {
		out = append(out, '\n')
	}
	out = append(out, leftOut(text, head, tail)...)
	return append(out, text[tail:]...)
}

// leftOut is the line that stands for text[from:to]. It names what package slice takes as it stands
// there: lines from 1 where whole lines are left out, and otherwise bytes from 0.
func leftOut(text []byte, from, to int) []byte {
	chars := textfile.Grouped(utf8.RuneCount(text[from:to]))
	if startsLine(text, from) && startsLine(text, to) {
		first := bytes.Count(text[:from], []byte{'\n'}) + 1
		gone := Lines(text[from:to])
		all := Lines(text)
		return []byte("[... left out: lines " + span(first, first+gone-1) + " of " + strconv.Itoa(all) + " (" + chars +
			" characters) ...]\n")
	}
	return []byte("[... left out: bytes " + span(from, to-1) + " of " + strconv.Itoa(len(text)) + " (" + chars +
		" characters) ...]\n")
}

func startsLine(text []byte, at int) bool { return at == 0 || text[at-1] == '\n' }

func span(first, last int) string { return strconv.Itoa(first) + "-" + strconv.Itoa(last) }

// Lines returns how many lines text has. What follows the last line break is a line if it is not empty.
func Lines(text []byte) int {
	n := bytes.Count(text, []byte{'\n'})
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}
