package code

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Bounds of one ignore file: what is past them is not heeded.
const (
	mostIgnoreBytes    = 1 << 20
	mostIgnorePatterns = 5000
)

// pattern is one line of a .gitignore file, or the glob of a search.
type pattern struct {
	glob    string // for doublestar, over the path relative to the file's directory
	name    string // the whole name that it stands for, where it holds no magic and no slash
	negate  bool   // re-includes
	dirOnly bool
}

// parsePattern reads a line of .gitignore, of which gitignore(5) says: "If there is a separator at
// the beginning or middle (or both) of the pattern, then the pattern is relative to the directory
// level of the particular .gitignore file itself. Otherwise the pattern may also match at any level
// below the .gitignore level." Braces stand for themselves there, and for alternatives in the globs
// of a search.
func parsePattern(text string, braces bool) (pattern, bool) {
	var p pattern
	text = strings.TrimSuffix(text, "\r")
	for strings.HasSuffix(text, " ") && !strings.HasSuffix(text, `\ `) {
		text = text[:len(text)-1]
	}
	if text == "" || text[0] == '#' && !braces {
		return p, false
	}
	text, p.negate = strings.CutPrefix(text, "!")
	text, p.dirOnly = strings.CutSuffix(text, "/")
	if text == "" {
		return p, false
	}
	if !braces {
		text = strings.NewReplacer(`\{`, `\{`, `\}`, `\}`, `{`, `\{`, `}`, `\}`).Replace(text)
	}
	rooted := strings.Contains(text, "/")
	text = strings.TrimPrefix(text, "/")
	switch {
	case text == "":
		return p, false
	case !rooted && !strings.ContainsAny(text, `*?[\{`):
		p.name = text
		return p, true
	case !rooted:
		text = "**/" + text
	}
	if text == "**" || strings.HasSuffix(text, "/**") {
		text += "/*" // "a/**" is what lies inside a, in doublestar also a itself
	}
	p.glob = text
	return p, doublestar.ValidatePattern(text)
}

// match reports whether p speaks of rel, a path with slashes relative to where p stands.
func (p *pattern) match(rel string, dir bool) bool {
	if p.dirOnly && !dir {
		return false
	}
	if p.name != "" {
		return path.Base(rel) == p.name
	}
	return doublestar.MatchUnvalidated(p.glob, rel)
}

// ignoreLevel holds the patterns of one directory.
type ignoreLevel struct {
	dir      string // absolute, native separators
	patterns []pattern
}

// ignored reports whether the nearest pattern that speaks of full says so. levels are sorted from the top down.
func ignored(levels []ignoreLevel, full string, dir bool) bool {
	for _, l := range slices.Backward(levels) {
		rel, ok := relativeTo(l.dir, full)
		if !ok {
			continue
		}
		for _, p := range slices.Backward(l.patterns) {
			if p.match(rel, dir) {
				return !p.negate
			}
		}
	}
	return false
}

// relativeTo returns full, which is below dir, relative to it and with slashes.
func relativeTo(dir, full string) (string, bool) {
	rel, ok := strings.CutPrefix(full, dir)
	if !ok {
		return "", false
	}
	if !os.IsPathSeparator(dir[len(dir)-1]) {
		if rel == "" || !os.IsPathSeparator(rel[0]) {
			return "", false
		}
		rel = rel[1:]
	}
	return filepath.ToSlash(rel), rel != ""
}

// ignoreLevelOf reads the ignore files of dir, the later one over the earlier, as rg has it. A file that cannot be read
// counts as empty.
func (t *Toolset) ignoreLevelOf(dir string) ignoreLevel {
	l := ignoreLevel{dir: dir}
	for _, name := range []string{".gitignore", ".ignore"} {
		if f, err := t.open(filepath.Join(dir, name)); err == nil {
			l.patterns = append(l.patterns, parseIgnore(io.LimitReader(f, mostIgnoreBytes))...)
			f.Close()
		}
	}
	return l
}

func parseIgnore(r io.Reader) []pattern {
	var patterns []pattern
	scan := bufio.NewScanner(r) // stops at a line of 64 KiB, which is no pattern
	for first := true; scan.Scan() && len(patterns) < mostIgnorePatterns; first = false {
		text := scan.Text()
		if first {
			text = strings.TrimPrefix(text, "\uFEFF")
		}
		if p, ok := parsePattern(text, false); ok {
			patterns = append(patterns, p)
		}
	}
	return patterns
}

// ignoreLevelsAbove reads the ignore files of the directories above dir, up to the one that holds
// .git or is the project. Where there is no such directory, those above have no say.
func (t *Toolset) ignoreLevelsAbove(dir string) []ignoreLevel {
	var levels []ignoreLevel
	for at := dir; !t.isTop(at); {
		parent := filepath.Dir(at)
		if parent == at {
			return nil
		}
		at = parent
		levels = append(levels, t.ignoreLevelOf(at))
	}
	slices.Reverse(levels)
	return levels
}

func (t *Toolset) isTop(dir string) bool {
	if dir == t.root {
		return true
	}
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil
}

// Bounds of the glob of a search. Alternatives multiply, so braces are few.
const (
	mostGlob   = 256
	mostBraces = 3
)

var errGlob = errors.New("not a glob")

// parseGlob reads the glob of a search; nil for none.
func parseGlob(text string) (*pattern, error) {
	if text == "" {
		return nil, nil
	}
	// files are looked for: those inside
	if dir, ok := strings.CutSuffix(text, "/"); ok && !strings.HasPrefix(text, "!") {
		if !strings.Contains(dir, "/") {
			text = "**/" + text
		}
		text += "**"
	}
	p, ok := parsePattern(text, true)
	if !ok || strings.Count(text, "{") > mostBraces {
		return nil, errGlob
	}
	return &p, nil
}
