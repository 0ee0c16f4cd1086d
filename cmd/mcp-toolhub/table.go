package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// tableWidth is how wide a table is at most, unless --wide is given.
const tableWidth = 100

// columnGap is the number of spaces between two columns.
const columnGap = 2

// wideUsage is the help of --wide.
const wideUsage = "show all columns, also those beyond 100 characters"

// table is rows for people to read. The first row holds the titles. Its columns stand in the order of their importance.
type table struct {
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// text returns the table with as many of its columns as fit into width. The first two always stay. Where
// coloured is true the second column, that of states, is.
func (t *table) text(width int, coloured bool) string {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	columns, used := 0, 0
	for columns < len(widths) && (columns < 2 || used+widths[columns] <= width) {
		used += widths[columns] + columnGap
		columns++
	}
	var b strings.Builder
	for r, row := range t.rows {
		pad := ""
		for i, cell := range row[:min(columns, len(row))] {
			b.WriteString(pad)
			pad = strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+columnGap)
			if coloured && r > 0 && i == 1 {
				cell = painted(cell)
			}
			b.WriteString(cell)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// isColoured reports whether what goes to stream is coloured: on a terminal, unless NO_COLOR (https://no-color.org) or TERM
// says that the person wants none.
func (s streams) isColoured(stream any) bool {
	unwanted, _ := s.getenv("NO_COLOR")
	kind, _ := s.getenv("TERM")
	return unwanted == "" && kind != "dumb" && isTerminal(stream)
}

// painted returns the word for a state in its colour: green where all is well, yellow where that takes a while, red where
// somebody has to do something. Any other text stays as it is.
func painted(word string) string {
	colour := 0
	switch word {
	case string(tool.ServerReady), stepOK:
		colour = 32
	case string(tool.ServerStarting):
		colour = 33
	case string(tool.ServerBackoff), string(tool.ServerNeedsAuth), stepFails:
		colour = 31
	default:
		return word
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, word)
}

// count returns a number of things: "1 server", "2 servers".
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
