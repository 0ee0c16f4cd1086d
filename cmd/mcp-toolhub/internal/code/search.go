package code

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const (
	defaultMatches = 100
	mostMatches    = 1000
	mostMatchBytes = 512 // shown of a matching line

	// A line takes at most about (size of the program) x (bytes looked at) steps, and no step can
	// be interrupted: so the program is bounded, and the longer it is the less of a line is looked
	// at.
	mostProgram = 2000
	mostSteps   = 100_000_000
	mostWindow  = 1 << 20

	progressEvery = 500 // entries
)

// Why a search stopped early.
const (
	cutLimit   = "limit"
	cutBytes   = "bytes"
	cutTime    = "time"
	cutEntries = "entries"
)

var errStop = errors.New("the search is over")

// match is one matching line.
type match struct {
	Path   string `json:"path"`
	Line   int    `json:"line"`
	Column int    `json:"column"` // of the first match, in bytes from 1
	Text   string `json:"text"`
	Cut    bool   `json:"cut,omitempty"` // Text is a part of the line, around the match
}

// searchContent is the structured content of search.
type searchContent struct {
	Query         string        `json:"query"`
	Path          string        `json:"path"`
	Glob          string        `json:"glob,omitempty"`
	Matches       []match       `json:"matches"`
	FilesSearched int           `json:"files_searched"`
	BytesSearched int64         `json:"bytes_searched"`
	Truncated     bool          `json:"truncated"`
	TruncatedBy   string        `json:"truncated_by,omitempty"`
	LongLines     int           `json:"long_lines,omitempty"` // looked at in their first part only
	Skipped       searchSkipped `json:"skipped"`
}

// searchSkipped counts what was not looked into. Hidden and ignored entries are not counted.
type searchSkipped struct {
	Sensitive  int `json:"sensitive"`
	Binary     int `json:"binary"`
	Unreadable int `json:"unreadable"`
}

// searcher is one search. The design document bases it on rg. This is rg's behaviour (RE2 syntax,
// .gitignore and .ignore heeded, hidden and binary files and links left out, globs over ignore
// rules) in Go, also where rg is installed: a fresh machine has none, results must not depend on
// the machine, and rg opens files by name, which would let a link that is exchanged meanwhile lead
// it to a sensitive file.
type searcher struct {
	t        *Toolset
	in       *reading
	re       *regexp.Regexp
	glob     *pattern
	base     string
	limit    int
	window   int
	budget   int64
	visited  int
	progress func(tool.Progress)
	out      searchContent
}

func (t *Toolset) search(ctx context.Context, e *tool.Execution) (answer, error) {
	args := struct {
		Query, Path, Glob string
		Limit             integer
	}{Path: ".", Limit: defaultMatches}
	s := &searcher{t: t, in: t.reading(e), budget: t.maxScanBytes, progress: e.Progress}
	err := readArguments(e, &args)
	if err == nil {
		s.limit, err = int(args.Limit), s.compile(args.Query, args.Glob)
	}
	if err == nil {
		s.base, err = t.locate(args.Path)
	}
	if err != nil {
		return answer{}, err
	}
	s.out = searchContent{Query: args.Query, Path: t.show(s.base), Glob: args.Glob, Matches: []match{}}
	if err := s.run(ctx, args.Path); err != nil {
		return answer{}, err
	}
	s.out.BytesSearched = t.maxScanBytes - s.budget
	return answer{text: s.out.text(), note: s.out.note(), structured: s.out}, nil
}

// compile reads the query and the glob.
func (s *searcher) compile(query, glob string) error {
	if strings.ContainsAny(query, "\r\n") {
		return invalid(codeInvalidQuery,
			"the query holds a line break, but lines are searched one by one: search for one line of it")
	}
	parsed, err := syntax.Parse(query, syntax.Perl)
	if err != nil {
		return invalid(codeInvalidQuery,
			"the query is not a regular expression in RE2 syntax (%v): escape special characters, "+
				`for instance \( or \[`, err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > mostProgram {
		return invalid(codeInvalidQuery, "the query is too complex: make its repetitions smaller")
	}
	s.window = min(mostWindow, mostSteps/len(program.Inst))
	if s.re, err = regexp.Compile(query); err != nil {
		return invalid(codeInvalidQuery, "the query is not a regular expression (%v): simplify it", err)
	}
	if s.glob, err = parseGlob(glob); err != nil {
		return invalid(codeInvalidGlob,
			"%q is not a glob: write one like *.go, src/**/*.ts, *.{js,ts} or !*_test.go, with at most %d braces",
			glob, mostBraces)
	}
	return nil
}

// run searches the base, a file or a directory, until all is done or a bound is reached.
func (s *searcher) run(ctx context.Context, arg string) error {
	limited, cancel := context.WithTimeout(ctx, s.t.maxSearchTime)
	defer cancel()
	f, err := s.in.first(s.base)
	if err != nil {
		return openFailure(arg, err)
	}
	if f.info.IsDir() {
		err = s.dir(limited, s.base, f, s.t.ignoreLevelsAbove(s.base))
	} else {
		err = s.file(limited, s.base, f)
		f.Close()
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		s.cut(cutTime)
	case err != nil && !errors.Is(err, errStop):
		return openFailure(arg, err)
	}
	return nil
}

func (s *searcher) cut(why string) error {
	s.out.Truncated, s.out.TruncatedBy = true, cmp.Or(s.out.TruncatedBy, why)
	return errStop
}

// dir searches what lies in the directory d, called full, in the order of names, and closes d. An
// error other than errStop or ctx's is about full itself.
func (s *searcher) dir(ctx context.Context, full string, d *opened, levels []ignoreLevel) error {
	entries, more, err := readDir(ctx, d)
	if err != nil {
		return err
	}
	// Clipped, so that siblings do not write over each other's levels.
	levels = append(slices.Clip(levels), s.t.ignoreLevelOf(full))
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.entry(ctx, filepath.Join(full, e.Name()), e, levels); err != nil {
			return err
		}
	}
	if more {
		return s.cut(cutEntries)
	}
	return nil
}

// entry searches one entry of a directory if it is to be searched. It returns errStop and ctx's errors only.
func (s *searcher) entry(ctx context.Context, full string, e fs.DirEntry, levels []ignoreLevel) error {
	s.tick()
	isDir := e.IsDir()
	if !isDir && !e.Type().IsRegular() {
		return nil
	}
	chosen, decided := s.selects(full, isDir)
	if decided && !chosen {
		return nil
	}
	// counted also where hidden or ignored, as most are: a search that misses them says so
	if s.t.sensitive.Match(full) {
		s.out.Skipped.Sensitive++
		return nil
	}
	if !decided && (strings.HasPrefix(e.Name(), ".") || ignored(levels, full, isDir)) {
		return nil
	}
	f, err := s.in.below(full)
	switch {
	case err != nil:
	case isDir:
		err = s.dir(ctx, full, f, levels)
	default:
		err = s.file(ctx, full, f)
		f.Close()
	}
	switch {
	case err == nil, errors.Is(err, errStop):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errSensitive):
		s.out.Skipped.Sensitive++
	default:
		s.out.Skipped.Unreadable++
	}
	return nil
}

// selects applies the glob to full. It decides on every file, over hidden names and ignore rules, and of directories on
// those alone that it excludes.
func (s *searcher) selects(full string, isDir bool) (chosen, decided bool) {
	if s.glob == nil {
		return false, false
	}
	hit := false
	for _, from := range []string{s.base, s.t.root} {
		rel, ok := relativeTo(from, full)
		hit = hit || ok && s.glob.match(rel, isDir)
	}
	if s.glob.negate {
		return false, hit
	}
	return hit, !isDir
}

// file searches f, a regular file.
func (s *searcher) file(ctx context.Context, full string, f *opened) error {
	if f.info.IsDir() {
		return errChanged // it was a file when its directory was read
	}
	br := bufio.NewReaderSize(&source{check: ctx.Err, r: f, budget: &s.budget}, 64<<10)
	head, err := br.Peek(sniffBytes)
	if errors.Is(err, errBudget) {
		return s.cut(cutBytes)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if binaryType(head) != "" {
		s.out.Skipped.Binary++
		return nil
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		br.Discard(3)
	}
	s.out.FilesSearched++
	l := &lines{br: br}
	for number := 1; ; number++ {
		next, err := l.next(s.window)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errBudget):
			return s.cut(cutBytes)
		case err != nil:
			return err
		}
		if err := s.line(full, number, next); err != nil {
			return err
		}
	}
}

func (s *searcher) line(full string, number int, l line) error {
	if l.cut() {
		s.out.LongLines++
	}
	at := s.re.FindIndex(l.text)
	if at == nil {
		return nil
	}
	if len(s.out.Matches) >= s.limit {
		return s.cut(cutLimit)
	}
	m := match{Path: strings.ToValidUTF8(s.t.show(full), "\uFFFD"), Line: number, Column: at[0] + 1, Cut: l.cut()}
	text := l.text
	if len(text) > mostMatchBytes {
		from := min(max(0, at[0]-mostMatchBytes/4), len(text)-mostMatchBytes)
		from = runeBoundary(text, from)
		text = text[from:runeBoundary(text, from+mostMatchBytes)]
		m.Cut = true
	}
	m.Text = strings.ToValidUTF8(string(text), "\uFFFD")
	s.out.Matches = append(s.out.Matches, m)
	return nil
}

// tick counts an entry and reports progress now and then: by count, since a clock would make results differ.
func (s *searcher) tick() {
	s.visited++
	if s.visited%progressEvery != 0 || s.progress == nil {
		return
	}
	s.progress(tool.Progress{Params: fmt.Appendf(nil,
		`{"progress":%d,"message":"looked at %d entries, %d matches so far"}`,
		s.visited, s.visited, len(s.out.Matches))})
}

// text is one match a line, as grep writes them.
func (c *searchContent) text() string {
	if len(c.Matches) == 0 {
		return fmt.Sprintf("no match in %d files", c.FilesSearched)
	}
	var b strings.Builder
	for _, m := range c.Matches {
		fmt.Fprintf(&b, "%s:%d:%s\n", m.Path, m.Line, m.Text)
	}
	return b.String()
}

// note tells in words what was left out.
func (c *searchContent) note() string {
	var parts []string
	switch c.TruncatedBy {
	case cutLimit:
		parts = append(parts,
			fmt.Sprintf("the first %d matches; more exist: narrow query, path or glob, or raise limit up to %d",
				len(c.Matches), mostMatches))
	case cutBytes, cutTime, cutEntries:
		parts = append(parts, fmt.Sprintf("stopped early, its bound of %s was reached: narrow path or glob",
			c.TruncatedBy))
	}
	if c.LongLines > 0 {
		parts = append(parts, fmt.Sprintf("%d very long lines were searched in their first part only", c.LongLines))
	}
	if n := c.Skipped.Sensitive; n > 0 {
		parts = append(parts, fmt.Sprintf("%d sensitive entries were not searched", n))
	}
	if n := c.Skipped.Unreadable; n > 0 {
		parts = append(parts, fmt.Sprintf("%d entries could not be read", n))
	}
	return noteOf(parts)
}

// noteOf is the second block of a result; "" for none.
func noteOf(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return "[" + strings.Join(parts, "; ") + "]"
}
