package slice

import (
	"bytes"
	"context"
	"regexp"
	"strconv"
	"unicode/utf8"
)

// longLine is how many bytes a line has that grep does not show whole: it shows what stands around each match, and of a
// context line the beginning.
const longLine = 2000

// around is how many bytes on each side of a match in a long line are shown.
const around = 200

// grep answers with the lines that match, each after its number and a colon, and with the lines
// around them, each after its number and a hyphen. A line of two hyphens stands between lines that
// do not follow each other.
func (p *page) grep(ctx context.Context) (Answer, error) {
	pattern, err := regexp.Compile(p.request.Grep)
	if err != nil {
		return Answer{}, faultf("%s is no regular expression of RE2: correct it (%s).", quoted(p.request.Grep),
			shorten(err.Error(), 200))
	}
	if !utf8.Valid(p.doc.data) {
		return Answer{}, faultf("grep reads text, and %s is none: read it by bytes.", p.doc.name)
	}
	if p.request.Count {
		return p.countMatches(ctx, pattern)
	}
	g := grepper{page: p, pattern: pattern, data: p.doc.data, last: p.state.at, line: p.state.line,
		after: p.state.after}
	if g.last > len(g.data) {
		return Answer{}, errCursor
	}
	full, err := g.run(ctx)
	if err != nil {
		return Answer{}, err
	}
	what := "Lines that match"
	if len(p.out) == 0 {
		what = "Nothing that matches"
	}
	a := Answer{Data: p.out}
	p.finish(&a, what, state{at: g.last, line: g.line, after: g.after, skip: p.state.skip}, full)
	return a, nil
}

func (p *page) countMatches(ctx context.Context, pattern *regexp.Regexp) (Answer, error) {
	lines, matches := 0, 0
	for i, n := 0, 0; i < len(p.doc.data); n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return Answer{}, ctx.Err()
		}
		end := lineStart(p.doc.data, i, 1)
		if found := len(pattern.FindAllIndex(content(p.doc.data[i:end]), -1)); found > 0 {
			lines, matches = lines+1, matches+found
		}
		i = end
	}
	a := Answer{Data: []byte(`{"matching_lines":` + strconv.Itoa(lines) + `,"matches":` + strconv.Itoa(matches) + `}`)}
	p.finish(&a, "The counts", state{}, false)
	return a, nil
}

// content is a line without its line break.
func content(line []byte) []byte { return bytes.TrimRight(line, "\r\n") }

// grepper goes through lines. Between two items its fields say where it is.
type grepper struct {
	page    *page
	pattern *regexp.Regexp
	data    []byte
	last    int // where what was shown last ended: the end of a line, or within a long one
	line    int // line breaks before last
	after   int // lines that follow as context
}

// run writes items until the end or until the page is full.
func (g *grepper) run(ctx context.Context) (full bool, err error) {
	if g.last > 0 && g.data[g.last-1] != '\n' {
		if full = !g.long(g.last - bytes.LastIndexByte(g.data[:g.last], '\n') - 1); full {
			return true, nil
		}
	}
	i, n := g.last, g.line // the line at hand
	for ; i < len(g.data); n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		end := lineStart(g.data, i, 1)
		switch {
		case g.pattern.Match(content(g.data[i:end])):
			if full = !g.match(i, end, n); full {
				return true, nil
			}
		case g.after > 0:
			if !g.page.take(item(n, '-', beginning(content(g.data[i:end])))) {
				return true, nil
			}
			g.last, g.line, g.after = end, n+1, g.after-1
		}
		i = end
	}
	return false, nil
}

// match shows the line at i, number n from 0, and the context before it.
func (g *grepper) match(i, end, n int) bool {
	begin, before := i, 0
	for before < g.page.request.Context && begin > g.last {
		begin = bytes.LastIndexByte(g.data[:begin-1], '\n') + 1
		before++
	}
	for ; before > 0; before-- {
		next := lineStart(g.data, begin, 1)
		if !g.page.take(g.separated(begin, item(n-before, '-', beginning(content(g.data[begin:next]))))) {
			return false
		}
		g.last, g.line, g.after, begin = next, n-before+1, 0, next
	}
	line := content(g.data[i:end])
	if len(line) > longLine {
		if g.last < i {
			g.line = n
		}
		return g.windows(i, end, n, 0)
	}
	if !g.page.take(g.separated(i, item(n, ':', line))) {
		return false
	}
	g.last, g.line, g.after = end, n+1, g.page.request.Context
	return true
}

// separated puts two hyphens before an item at i that does not follow what was shown last.
func (g *grepper) separated(i int, item []byte) []byte {
	if g.page.request.Context > 0 && g.last > 0 && i > g.last {
		return append([]byte("--\n"), item...)
	}
	return item
}

// long goes on in a long line whose first bytes were shown.
func (g *grepper) long(from int) bool {
	i := g.last - from
	return g.windows(i, lineStart(g.data, i, 1), g.line, from)
}

// windows shows what stands around the matches in the long line at i, from a byte of it on.
func (g *grepper) windows(i, end, n, from int) bool {
	line := content(g.data[i:end])
	for _, at := range g.pattern.FindAllIndex(line, -1) {
		if at[0] < from {
			continue
		}
		first := boundary(line, max(from, at[0]-around))
		past := boundary(line, min(len(line), min(at[1], at[0]+longLine)+around))
		text := append([]byte(nil), strconv.Itoa(n+1)...)
		text = append(text, " (bytes "+strconv.Itoa(i+first)+"-"+strconv.Itoa(i+past-1)+"):"...)
		text = append(append(text, line[first:past]...), '\n')
		if !g.page.take(g.separated(i, text)) {
			return false
		}
		g.last, g.line, from = i+past, n, past
	}
	g.last, g.line, g.after = end, n+1, g.page.request.Context
	return true
}

// boundary returns at, or the index of the next character that begins behind it.
func boundary(line []byte, at int) int {
	for at < len(line) && !utf8.RuneStart(line[at]) {
		at++
	}
	return at
}

// item is a line after its number, from 1.
func item(n int, mark byte, line []byte) []byte {
	out := strconv.AppendInt(nil, int64(n+1), 10)
	return append(append(append(out, mark), line...), '\n')
}

// beginning is a line of the context: of a long one, the first bytes.
func beginning(line []byte) []byte {
	if len(line) <= longLine {
		return line
	}
	short := line[:boundary(line, around)]
	return append(short[:len(short):len(short)], "... ("+plural(len(line), "byte")+")"...)
}
