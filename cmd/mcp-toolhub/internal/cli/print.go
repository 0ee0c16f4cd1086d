package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// outputFlag adds -o to a command that can print JSON. The root command checks its value.
func (a *app) outputFlag(flags *pflag.FlagSet) {
	flags.StringVarP(&a.format, "output", "o", "table", "table or json")
}

// formatsOf returns what -o takes.
func formatsOf(output *pflag.Flag) []string {
	if formats := output.Annotations["formats"]; formats != nil {
		return formats
	}
	return []string{"table", "json"}
}

// json reports whether the command is to print JSON.
func (a *app) json() bool { return a.format == "json" }

func (a *app) printJSON(v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return a.std.print(text)
}

// say prints a line that was asked for.
func (s streams) say(format string, args ...any) { fmt.Fprintln(s.out, fmt.Sprintf(format, args...)) }

// note prints a line about the work.
func (s streams) note(format string, args ...any) { fmt.Fprintln(s.err, fmt.Sprintf(format, args...)) }

// wait shows on a terminal what a person waits for, in a line that the next one takes the place of;
// "" clears it. What is logged meanwhile is written over it.
func (s streams) wait(text string) {
	if isTerminal(s.err) {
		fmt.Fprintf(s.err, "\r\x1b[K%s\r", hidden.Summary(text, tableWidth-1))
	}
}

func (s streams) warn(format string, args ...any) { s.note("warning: "+format, args...) }

// printAs prints v as JSON, or the table, as -o says.
func (a *app) printAs(v any, t *table) error {
	if a.json() {
		return a.printJSON(v)
	}
	return a.std.printTable(t)
}

// printTable prints the table: on a terminal what fits into its width, elsewhere all of it.
func (s streams) printTable(t *table) error {
	width := math.MaxInt
	if isTerminal(s.out) {
		width = tableWidth
	}
	_, err := io.WriteString(s.out, t.text(width, false))
	return err
}

func (s streams) print(text []byte) error {
	if isTerminal(s.out) {
		text = []byte(hidden.EscapeJSON(string(text)))
	}
	if _, err := s.out.Write(append(bytes.TrimRight(text, "\n"), '\n')); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// printable makes the text of a server safe for a terminal. It escapes hidden characters, which a model reads, too.
func printable(text string) string { return hidden.Escape(text) }

// tableWidth bounds a table on a terminal. --wide shows what is beyond it.
const tableWidth = 80

// widest is the width to which the last column may be cut.
const widest = 40

// columnGap is the number of spaces between two columns.
const columnGap = 2

// wideUsage is the help of --wide.
const wideUsage = "show all columns, also those beyond 80 characters"

// table holds rows for people to read. Its columns stand in the order of their importance.
type table struct {
	rows [][]string
}

// newTable returns a table with these titles and no other row.
func newTable(titles ...string) *table { return &table{[][]string{titles}} }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// text returns the table. Columns that do not fit into width are left out, but for the first two; the last one that
// stays is cut where it has to be. With coloured, the states in the second column have their colours.
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
	for columns < len(widths) && (columns < 2 || used+min(widths[columns], widest) <= width) {
		used += widths[columns] + columnGap
		columns++
	}
	room := math.MaxInt // of the last column
	if last := widths[columns-1]; used-columnGap > width {
		room = max(10, width-(used-last-columnGap))
	}
	var b strings.Builder
	for r, row := range t.rows {
		pad := ""
		for i, cell := range row[:min(columns, len(row))] {
			if i == columns-1 {
				cell = hidden.Summary(cell, room)
			}
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

// isColoured reports whether what goes to stream is coloured: on a terminal, unless NO_COLOR
// (https://no-color.org) or TERM says that the person wants none.
func (s streams) isColoured(stream any) bool {
	unwanted, _ := s.getenv("NO_COLOR")
	kind, _ := s.getenv("TERM")
	return unwanted == "" && kind != "dumb" && isTerminal(stream)
}

// painted returns the word for a state in its colour: green where all is well, yellow where that
// takes a while, red where somebody has to do something. Any other text stays as it is.
func painted(word string) string {
	colour := 0
	switch word {
	case string(tool.ServerReady), stepOK:
		colour = 32
	case string(tool.ServerStarting):
		colour = 33
	case string(tool.ServerBackoff), string(tool.ServerNeedsAuth), string(tool.ServerNeedsSetup), stepFails:
		colour = 31
	default:
		return word
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, word)
}
