package slice

import (
	"bytes"
	"context"
	"iter"
	"regexp"
	"strconv"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// longLine is how many bytes a line has that grep does not show whole: it shows the text around each
// match, and of a context line the beginning.
const longLine = 2000

// around is how many bytes on each side of a match in a long line are shown.
const around = 200

// grep answers with the lines that match, each after its number and a colon, and with the lines
// around them, each after its number and a hyphen. A line of two hyphens is between lines that do
// not follow each other.
func (p *page) grep(ctx context.Context) (Answer, error) {
	pattern, err := regexp.Compile(p.request.Grep)
	if err != nil {
		return Answer{}, faultf("%s is no regular expression of RE2: correct it (%s).", quoted(p.request.Grep),
			shorten(err.Error(), 200))
	}
	if !utf8.Valid(p.doc.data) {
		return Answer{}, faultf("grep reads text, and %s is none: read it by bytes.", p.doc.name)
	}
	g := grepper{page: p, pattern: pattern}
	for i, n := 0, 1; i < len(p.doc.data) && !p.full; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return Answer{}, ctx.Err()
		}
		end := lineStart(p.doc.data, i, 1)
		g.line(bytes.TrimRight(p.doc.data[i:end], "\r\n"), n, i)
		i = end
	}
	if p.request.Count {
		return p.counted(`{"matching_lines":` + strconv.Itoa(g.lines) + `,"matches":` + strconv.Itoa(g.matches) + `}`), nil
	}
	if len(p.out) == 0 {
		return p.items("Nothing that matches"), nil
	}
	return p.items("Lines that match"), nil
}

// grepper goes through the lines of a document.
type grepper struct {
	page    *page
	pattern *regexp.Regexp
	lines   int // that match
	matches int

	before [][]byte // the last lines that were not shown, as items: context of the next match
	after  int      // how many lines follow as context of the last match
	gap    bool     // lines were left out after the item before
}

// line reads line n, from 1, which begins at a byte of the document.
func (g *grepper) line(line []byte, n, at int) {
	context := g.page.request.Context
	switch {
	case g.page.request.Count:
		if found := len(g.pattern.FindAllIndex(line, -1)); found > 0 {
			g.lines, g.matches = g.lines+1, g.matches+found
		}
	case g.pattern.Match(line):
		for _, item := range g.before {
			g.show(item)
		}
		g.before, g.after = nil, context
		if len(line) <= longLine {
			g.show(item(n, ':', line))
			return
		}
		for window := range g.windows(line, n, at) {
			if g.show(window); g.page.full {
				return
			}
		}
	case g.after > 0:
		g.show(item(n, '-', beginning(line)))
		g.after--
	case context > 0:
		g.before = append(g.before, item(n, '-', beginning(line)))
		if len(g.before) > context {
			g.before, g.gap = g.before[1:], true
		}
	}
}

// show adds an item to the page, after two hyphens where it does not follow the item before.
func (g *grepper) show(item []byte) {
	if g.gap && g.page.n > 0 {
		item = append([]byte("--\n"), item...)
	}
	g.gap = false
	g.page.item(item)
}

// windows are the matches in a long line, each with the text around it, as items.
func (g *grepper) windows(line []byte, n, at int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		from := 0
		for _, match := range g.pattern.FindAllIndex(line, -1) {
			if match[0] < from {
				continue
			}
			first := boundary(line, max(from, match[0]-around))
			from = boundary(line, min(len(line), min(match[1], match[0]+longLine)+around))
			text := strconv.Itoa(n) + " (bytes " + strconv.Itoa(at+first) + "-" + strconv.Itoa(at+from-1) + "):"
			if !yield(append(append([]byte(text), line[first:from]...), '\n')) {
				return
			}
		}
	}
}

// boundary returns at, or the index of the next character that begins behind it.
func boundary(line []byte, at int) int {
	for at < len(line) && !utf8.RuneStart(line[at]) {
		at++
	}
	return at
}

// item is a line after its number.
func item(n int, mark byte, line []byte) []byte {
	out := append(strconv.AppendInt(nil, int64(n), 10), mark)
	return append(append(out, line...), '\n')
}

// beginning is a line of the context: of a long one, the first bytes.
func beginning(line []byte) []byte {
	if len(line) <= longLine {
		return line
	}
	short := line[:boundary(line, around)]
	return append(short[:len(short):len(short)], "... ("+textfile.Count(len(line), "byte")+")"...)
}
