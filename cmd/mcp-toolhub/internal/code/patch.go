package code

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// patch is a unified diff of one file.
type patch struct {
	text  string
	isNew bool     // the file is not there
	names []string // of the file: the diff names one of them, or none
}

// apply returns the text that the patch makes of d, and how many hunks it has. Every hunk must
// stand where its header says and name the lines there exactly; nothing is searched for and nothing
// of the patch is left out.
func (p *patch) apply(d document) (document, int, error) {
	text := p.text
	if allCRLF(text) || d.crlf {
		if p.isNew {
			d.crlf = allCRLF(text)
		}
		text = toLF(text)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n" // or its last line would be one without an ending
	}
	if strings.HasPrefix(text, "@@ ") {
		text = "--- unnamed\n+++ unnamed\n" + text
		p.names = append(p.names, "unnamed")
	}
	files, _, err := gitdiff.Parse(strings.NewReader(text))
	switch {
	case len(files) > 1:
		return d, 0, invalid(codeMultiFile,
			"the diff changes more than one file: send each in a call of its own, with its path")
	case err != nil:
		return d, 0, malformed(strings.TrimPrefix(err.Error(), "gitdiff: "))
	case len(files) == 0:
		return d, 0, malformed("it has no hunk with its @@ line and a header before it")
	}
	f := files[0]
	if err := p.check(f, text); err != nil {
		return d, 0, err
	}
	if err := checkHunks(f, d.body); err != nil {
		return d, 0, err
	}
	var out strings.Builder
	out.Grow(len(d.body) + len(text))
	a := gitdiff.NewTextApplier(&out, strings.NewReader(d.body))
	for i, hunk := range f.TextFragments {
		if err := a.ApplyFragment(hunk); err != nil {
			return d, 0, misfit(i, hunk, d.body, err)
		}
	}
	if err := a.Close(); err != nil {
		return d, 0, fmt.Errorf("apply the diff: %w", err)
	}
	d.body = out.String()
	return d, len(f.TextFragments), nil
}

// malformed says that the text is no unified diff that could be applied.
func malformed(why string) error {
	return invalid(codeInvalidPatch,
		"the diff cannot be read: %s: send a unified diff of the file, and nothing besides", hidden.Cut(why, 300))
}

// check refuses what is more than a change of the lines of this file, and what was passed over in reading the diff.
func (p *patch) check(f *gitdiff.File, text string) error {
	unsupported := func(what string) error {
		return invalid(codeUnsupported,
			"the diff %s, which this tool does not do: send a diff that changes the lines of %q", what,
			hidden.Cut(p.names[0], 200))
	}
	switch {
	case f.IsRename, f.IsCopy:
		return unsupported("renames or copies the file")
	case f.IsDelete:
		return unsupported("deletes the file")
	case f.IsBinary, f.BinaryFragment != nil, f.ReverseBinaryFragment != nil:
		return unsupported("is binary")
	case f.NewMode != 0 && !(f.IsNew && f.NewMode == 0o100644):
		return unsupported("sets the mode of the file")
	case f.IsNew && !p.isNew:
		return failedPatch("the diff creates the file, which is there already")
	case len(f.TextFragments) == 0:
		return malformed("it changes nothing")
	}
	header, err := p.header(text)
	if err != nil {
		return err
	}
	read := header // lines of the diff that its header and its hunks account for
	for _, hunk := range f.TextFragments {
		read += 1 + len(hunk.Lines)
		for _, line := range hunk.Lines {
			if line.NoEOL() {
				read++ // "\ No newline at end of file"
			}
		}
	}
	lines := strings.SplitAfter(text, "\n") // the last one is empty
	if read >= len(lines) || strings.Trim(strings.Join(lines[read:], ""), "\n") != "" {
		return malformed("its @@ lines do not count the lines that follow them")
	}
	return nil
}

// header returns how many lines come before the first hunk, all of which are about the file.
func (p *patch) header(text string) (int, error) {
	n := 0
	for line := range strings.Lines(text) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch kind {
		case "@@":
			return n, nil
		case "---", "+++":
			name, _, _ := strings.Cut(rest, "\t")
			if name = strings.TrimSpace(name); strings.HasPrefix(name, `"`) {
				name, _ = strconv.Unquote(name)
			}
			if !p.isNamed(name) && !(p.isNew && kind == "---" && name == "/dev/null") {
				return 0, invalid(codePatchOtherPath,
					"the diff is about %q and not about %q: send the diff of the file that path names",
					hidden.Cut(name, 200), hidden.Cut(p.names[0], 200))
			}
		case "diff", "index", "new": // of git; what it says besides stands in the other lines
		default:
			return 0, malformed(fmt.Sprintf("line %d is no part of a diff", n+1))
		}
		n++
	}
	return 0, malformed("it has no @@ line")
}

// isNamed reports whether name, as a diff has it, is the file.
func (p *patch) isNamed(name string) bool {
	bare := func(s string) string { return strings.TrimPrefix(path.Clean(filepath.ToSlash(s)), "/") }
	name = bare(name)
	return slices.ContainsFunc(p.names, func(own string) bool {
		own = bare(own)
		return name == own || name == "a/"+own || name == "b/"+own
	})
}

// checkHunks refuses what would fit anywhere, or leave a line without an ending in the middle of a file.
func checkHunks(f *gitdiff.File, body string) error {
	total := int64(countLines(body))
	for i, hunk := range f.TextFragments {
		if hunk.OldPosition < 0 || hunk.NewPosition < 0 || hunk.OldLines < 0 || hunk.NewLines < 0 {
			return malformed(fmt.Sprintf("the @@ line of hunk %d has a negative number", i+1))
		}
		if hunk.OldLines == 0 && body != "" {
			return failedPatch(fmt.Sprintf("hunk %d has no line of the file as it is, so that its place cannot be "+
				"checked: send lines around the change", i+1))
		}
		lastNew := len(hunk.Lines) - 1
		for lastNew >= 0 && !hunk.Lines[lastNew].New() {
			lastNew--
		}
		for n, line := range hunk.Lines {
			atEnd := i == len(f.TextFragments)-1 && n == lastNew && max(0, hunk.OldPosition-1)+hunk.OldLines >= total
			if line.New() && line.NoEOL() && !atEnd {
				return failedPatch(fmt.Sprintf("hunk %d takes the line ending from a line that is not the last one",
					i+1))
			}
		}
	}
	return nil
}

// failedPatch says that the diff does not fit the file.
func failedPatch(why string) error {
	return failure(tool.ClassExecutionFailed, codePatchFailed,
		"%s; nothing was written: read the file and make the diff anew, or use edits", why)
}

// misfit says which line of hunk i does not fit.
func misfit(i int, hunk *gitdiff.TextFragment, body string, err error) error {
	var where *gitdiff.ApplyError
	if !errors.As(err, &where) || where.FragmentLine < 1 || where.FragmentLine > len(hunk.Lines) {
		why := strings.TrimPrefix(err.Error(), "conflict: ")
		return failedPatch(fmt.Sprintf("hunk %d does not fit: %s", i+1, strings.ReplaceAll(why, "src", "the file")))
	}
	lines := strings.SplitAfter(body, "\n")
	have := ""
	if n := int(where.Line) - 1; n >= 0 && n < len(lines) {
		have = lines[n]
	}
	return failedPatch(fmt.Sprintf("hunk %d does not fit: line %d of the file is %q, and the diff has %q there",
		i+1, where.Line, hidden.Cut(have, 120), hidden.Cut(hunk.Lines[where.FragmentLine-1].Line, 120)))
}
