// Command weigh counts the Go code of the program outside tests, by place:
//
//	go run .ci/weigh/main.go
//
// It counts lines of code, lines of comments, bytes and embedded files. A package that no shipped
// program imports is test support: it has a row of its own and is not in the sum.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

const testSupport = "test support"

// places are the rows, by the beginning of a directory; the longest that fits counts.
var places = map[string]string{
	"":                                     "the rest of internal/",
	"cmd/mcp-toolhub":                      "package main",
	"cmd/mcp-toolhub/internal/cli":         "cli and hub",
	"cmd/mcp-toolhub/internal/hub":         "cli and hub",
	"cmd/mcp-toolhub/internal/lookup":      "cli and hub",
	"cmd/mcp-toolhub/internal/control":     "cli and hub",
	"cmd/mcp-toolhub/internal/relay":       "cli and hub",
	"cmd/mcp-toolhub/internal/service":     "cli and hub",
	"cmd/mcp-toolhub/internal/downstream":  "downstream, upstream, jsonrpc",
	"upstream":                             "downstream, upstream, jsonrpc",
	"internal/jsonrpc":                     "downstream, upstream, jsonrpc",
	"internal/mcp":                         "downstream, upstream, jsonrpc",
	"upstream/signin":                      "sign-in, login",
	"cmd/mcp-toolhub/internal/login":       "sign-in, login",
	"cmd/mcp-toolhub/internal/invoke":      "invoke and batch",
	"cmd/mcp-toolhub/internal/batch":       "invoke and batch",
	"policy":                               "policy",
	"persist":                              "persist, events, results",
	"cmd/mcp-toolhub/internal/events":      "persist, events, results",
	"cmd/mcp-toolhub/internal/results":     "persist, events, results",
	"deferred":                             "deferred and namespace",
	"namespace":                            "deferred and namespace",
	"cmd/mcp-toolhub/internal/config":      "config, textfile, shape",
	"internal/textfile":                    "config, textfile, shape",
	"internal/shape":                       "config, textfile, shape",
	"cmd/mcp-toolhub/internal/code":        "own tools, command, run",
	"cmd/mcp-toolhub/internal/declarative": "own tools, command, run",
	"cmd/mcp-toolhub/internal/command":     "own tools, command, run",
	"cmd/mcp-toolhub/internal/demo":        "own tools, command, run",
	"internal/run":                         "own tools, command, run",
	"cmd/mcp-toolhub/internal/clients":     "clients and splice",
	"internal/splice":                      "clients and splice",
	"cmd/mcp-toolhub/internal/console":     "console and telemetry",
	"cmd/mcp-toolhub/internal/telemetry":   "console and telemetry",
}

// weight holds the counts of a place.
type weight struct{ code, comments, blank, bytes, embedded, files int }

func (w *weight) add(o weight) {
	w.code, w.comments, w.blank = w.code+o.code, w.comments+o.comments, w.blank+o.blank
	w.bytes, w.embedded, w.files = w.bytes+o.bytes, w.embedded+o.embedded, w.files+o.files
}

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "weigh:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	shipped := map[string]bool{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		list, err := packages(system, "-deps", "-tags", "clouds", "./cmd/mcp-toolhub")
		if err != nil {
			return err
		}
		for _, p := range list {
			shipped[p.Dir] = true
		}
	}
	all, err := packages("linux", "./...")
	if err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	rows, sum := map[string]*weight{}, weight{}
	for _, p := range all {
		dir, err := filepath.Rel(root, p.Dir)
		if err != nil {
			return err
		}
		w, err := weigh(p)
		if err != nil {
			return err
		}
		place := testSupport
		if shipped[p.Dir] {
			place = placeOf(filepath.ToSlash(dir))
			sum.add(w)
		}
		if rows[place] == nil {
			rows[place] = &weight{}
		}
		rows[place].add(w)
	}
	names := slices.SortedFunc(maps.Keys(rows), func(a, b string) int {
		return cmp.Compare(rows[b].lines(), rows[a].lines())
	})
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "lines\tcode\tcomments\tbytes\tembedded bytes\tfiles\t place")
	for _, name := range names {
		rows[name].print(t, name)
	}
	sum.print(t, "all but test support")
	return t.Flush()
}

func (w *weight) lines() int { return w.code + w.comments + w.blank }

func (w *weight) print(out io.Writer, name string) {
	fmt.Fprintf(out, "%d\t%d\t%d\t%d\t%d\t%d\t %s\n", w.lines(), w.code, w.comments, w.bytes, w.embedded, w.files, name)
}

func placeOf(dir string) string {
	best := ""
	for prefix := range places {
		if (dir == prefix || strings.HasPrefix(dir, prefix+"/")) && len(prefix) > len(best) {
			best = prefix
		}
	}
	return places[best]
}

// listed holds the answer of `go list` about a package.
type listed struct {
	Dir                                           string
	GoFiles, CgoFiles, IgnoredGoFiles, EmbedFiles []string
}

func packages(system string, args ...string) (all []listed, err error) {
	cmd := exec.Command("go", append([]string{"list", "-json=Dir,GoFiles,CgoFiles,IgnoredGoFiles,EmbedFiles"}, args...)...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"), os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// weigh counts the files of a package, those of other systems too.
func weigh(p listed) (w weight, err error) {
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return w, err
		}
		w.add(weighFile(text))
	}
	for _, name := range p.EmbedFiles {
		info, err := os.Stat(filepath.Join(p.Dir, name))
		if err != nil {
			return w, err
		}
		w.embedded += int(info.Size())
	}
	return w, nil
}

func weighFile(text []byte) weight {
	var s scanner.Scanner
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(text))
	s.Init(file, text, nil, scanner.ScanComments)
	code, comment := map[int]bool{}, map[int]bool{}
	for {
		at, what, literal := s.Scan()
		if what == token.EOF {
			break
		}
		if what == token.SEMICOLON && literal == "\n" {
			continue
		}
		lines := code
		if what == token.COMMENT {
			lines = comment
		}
		first := file.Line(at)
		for n := range 1 + strings.Count(literal, "\n") {
			lines[first+n] = true
		}
	}
	maps.DeleteFunc(comment, func(line int, _ bool) bool { return code[line] })
	w := weight{code: len(code), comments: len(comment), bytes: len(text), files: 1}
	w.blank = bytes.Count(text, []byte("\n")) - w.code - w.comments
	return w
}
