package preview

import (
	"bytes"
	"strconv"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// table is a text that is, or holds, one table.
type table struct {
	kind    string // as people call it
	from    int    // where its head begins
	rows    int    // where its first row begins
	to      int    // where its last row ends
	n       int    // rows
	columns int    // 0 where that says nothing
	quoted  byte   // the separator of records that may go over several lines, or 0
	tail    []int  // where the last rows begin
}

const (
	minRows  = 3   // fewer rows are shown as text
	tailRows = 256 // of which a table remembers where they begin
)

// findTable looks for a table that is most of text.
func findTable(text []byte) (t table, ok bool) {
	if t, ok = markdownTable(text); ok {
		return t, true
	}
	if t, ok = jsonLines(text); ok {
		return t, true
	}
	for _, separator := range []byte("\t,;|") {
		if t, ok = separated(text, separator); ok {
			return t, true
		}
	}
	return alignedTable(text)
}

// lineEnd returns the index after the line that begins at i, its line break included.
func lineEnd(text []byte, i int) int {
	if n := bytes.IndexByte(text[i:], '\n'); n >= 0 {
		return i + n + 1
	}
	return len(text)
}

// row counts the row that begins at i.
func (t *table) row(i int) {
	t.n++
	if len(t.tail) == 2*tailRows {
		t.tail = append(t.tail[:0], t.tail[tailRows:]...)
	}
	t.tail = append(t.tail, i)
}

// end returns where the row that begins at i ends.
func (t *table) end(text []byte, i int) int {
	if t.quoted == 0 {
		return lineEnd(text, i)
	}
	end, _ := record(text, i, t.quoted)
	return end
}

// markdownTable finds a table of lines with bars under a head and a line of dashes.
func markdownTable(text []byte) (t table, ok bool) {
	const looked = 400 // lines in which the head has to be
	before := -1       // where the line before begins, if it has a bar
	for i, n := 0, 0; i < len(text) && n < looked; n++ {
		end := lineEnd(text, i)
		line := text[i:end]
		if before >= 0 && isRule(line) {
			t = table{kind: "Markdown table", from: before, rows: end, columns: cells(text[before:i])}
			for i = end; i < len(text); i = t.to {
				t.to = lineEnd(text, i)
				if bytes.IndexByte(text[i:t.to], '|') < 0 {
					t.to = i
					break
				}
				t.row(i)
			}
			return t, t.n >= minRows && 2*(t.to-t.from) >= len(text)
		}
		before = -1
		if bytes.IndexByte(line, '|') >= 0 {
			before = i
		}
		i = end
	}
	return t, false
}

// isRule reports whether line is the line of dashes below a head.
func isRule(line []byte) bool {
	line = bytes.TrimSpace(line)
	return bytes.IndexByte(line, '|') >= 0 && bytes.Contains(line, []byte("--")) && len(bytes.Trim(line, "|-: \t")) == 0
}

// cells returns how many columns a line of a Markdown table has.
func cells(line []byte) int { return bytes.Count(bytes.Trim(line, "| \t\r\n"), []byte{'|'}) + 1 }

// jsonLines takes text for a table whose rows are JSON objects.
func jsonLines(text []byte) (t table, ok bool) {
	i := rawjson.SkipSpace(text, 0)
	if i >= len(text) || text[i] != '{' {
		return t, false
	}
	t = table{kind: "JSON Lines", from: i, rows: i}
	for i < len(text) {
		end := lineEnd(text, i)
		if line := bytes.TrimSpace(text[i:end]); len(line) > 0 {
			if line[0] != '{' || !rawjson.Valid(line) {
				return t, false
			}
			t.row(i)
		}
		i = end
	}
	t.to = i
	return t, t.n >= minRows
}

// separated takes text for records of fields with a separator between them, as in CSV: all have as
// many fields as the first.
func separated(text []byte, separator byte) (t table, ok bool) {
	t = table{kind: kindOf(separator), to: len(text), quoted: separator}
	last := 0 // where the last comment before the table begins: it may be the head
	for t.from < len(text) && (text[t.from] == '#' || text[t.from] == '\n') {
		last, t.from = t.from, lineEnd(text, t.from)
	}
	t.rows, t.columns = record(text, t.from, separator)
	if _, n := record(text[:t.from], last, separator); n == t.columns {
		t.from, t.rows = last, t.from
	}
	if t.columns < 2 || t.rows > 1<<16 || t.from > len(text)/2 {
		return t, false
	}
	wrong := 0
	for i := t.rows; i < len(text); {
		end, fields := record(text, i, separator)
		if len(bytes.TrimSpace(text[i:end])) > 0 {
			t.row(i)
			if fields != t.columns {
				wrong++
			}
		}
		if t.n <= 50 && wrong > 0 || wrong > t.n/50 {
			return t, false
		}
		i = end
	}
	least := minRows
	if t.columns == 2 && separator != '\t' {
		least = 8 // a few lines of prose have one comma, too
	}
	return t, t.n >= least
}

func kindOf(separator byte) string {
	switch separator {
	case '\t':
		return "TSV table"
	case ',':
		return "CSV table"
	}
	return "table (fields separated by " + string(separator) + ")"
}

// record returns where the record that begins at i ends, and how many fields it has. A field in
// quotes may hold separators and up to a hundred line breaks.
func record(text []byte, i int, separator byte) (end, fields int) {
	fields = 1
	begin := true // of a field
	for lines := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' && begin:
			closed := quotedEnd(text, i)
			if closed < 0 || lines > 100 {
				begin = false
				continue
			}
			lines += bytes.Count(text[i:closed], []byte{'\n'})
			i = closed - 1
			begin = false
		case c == separator:
			fields++
			begin = true
		case c == '\n':
			return i + 1, fields
		default:
			begin = false
		}
	}
	return i, fields
}

// quotedEnd returns the index after the field in quotes that begins at i, or -1 where it does not end within 64 KiB.
func quotedEnd(text []byte, i int) int {
	window := text[:min(len(text), i+1<<16)]
	for at := i + 1; ; {
		n := bytes.IndexByte(window[at:], '"')
		if n < 0 {
			return -1
		}
		at += n + 1
		if at >= len(window) || window[at] != '"' {
			return at
		}
		at++
	}
}

// alignedTable takes text for a table whose columns begin at the same places in each line, as
// programs print for people.
func alignedTable(text []byte) (t table, ok bool) {
	t = table{kind: "table", rows: lineEnd(text, 0), to: len(text)}
	if t.rows > 1<<12 {
		return t, false
	}
	starts := columnStarts(text[:t.rows])
	t.columns = len(starts)
	if t.columns < 3 {
		return t, false
	}
	wrong := 0
	for i := t.rows; i < len(text); {
		end := lineEnd(text, i)
		if line := bytes.TrimRight(text[i:end], "\r\n"); len(line) > 0 {
			t.row(i)
			if !aligned(line, starts) {
				wrong++
			}
		}
		if wrong > t.n/10 {
			return t, false
		}
		i = end
	}
	return t, t.n >= minRows
}

// columnStarts returns where the words of a head begin that have two or more spaces before them.
func columnStarts(head []byte) []int {
	var starts []int
	head = bytes.TrimRight(head, " \r\n")
	for i, c := range head {
		if c != ' ' && (i == 0 || head[i-1] == ' ' && (i == 1 || head[i-2] == ' ')) {
			starts = append(starts, i)
		}
	}
	return starts
}

// aligned reports whether line has something at each place but for empty cells, and a space before it.
func aligned(line []byte, starts []int) bool {
	filled := 0
	for _, at := range starts {
		if at >= len(line) {
			break
		}
		if at > 0 && line[at-1] != ' ' {
			return false
		}
		if line[at] != ' ' {
			filled++
		}
	}
	return filled >= min(2, len(starts))
}

// title says what the table is.
func (t *table) title() string {
	s := t.kind + ": " + plural(t.n, "row")
	if t.columns > 0 {
		s += ", " + plural(t.columns, "column")
	}
	return s
}

// show writes the table in at most limit characters: its head, its first and its last rows, and
// what stands around it. ok is false where not even a row fits.
func (t *table) show(text []byte, limit int) (out []byte, ok bool) {
	before, after := cut(text[:t.from], limit/6), cut(text[t.to:], limit/6)
	room := limit - Size(before) - Size(after) - Size(text[t.from:t.rows]) - markSize
	if room < 0 {
		return nil, false
	}
	head, shown := t.rows, 0
	for left := room * 2 / 3; head < t.to; shown++ {
		end := t.end(text, head)
		if left -= Size(text[head:end]); left < 0 {
			break
		}
		head = end
	}
	if shown == 0 {
		return nil, false
	}
	left, last, n := room-Size(text[t.rows:head]), t.to, 0
	for i := len(t.tail) - 1; i >= 0 && t.tail[i] >= head; i-- {
		if left -= Size(text[t.tail[i]:last]); left < 0 {
			break
		}
		last, n = t.tail[i], n+1
	}
	out = append(append(out, before...), text[t.from:head]...)
	if n+shown < t.n {
		if out[len(out)-1] != '\n' {
			out = append(out, '\n')
		}
		first := bytes.Count(text[:head], []byte{'\n'}) + 1
		out = append(out, "[... left out: rows "+span(shown+1, t.n-n)+" of "+strconv.Itoa(t.n)+" (lines "+
			span(first, first+Lines(text[head:last])-1)+") ...]\n"...)
	} else {
		last = head
	}
	out = append(out, text[last:t.to]...)
	return append(out, after...), true
}
