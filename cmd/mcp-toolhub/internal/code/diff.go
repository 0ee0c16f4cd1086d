package code

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

const (
	mostDiffText  = 32 << 10 // bytes of text before and after that one result shows
	mostDiffHunks = 50
	mostDiffLines = 200_000 // more are not compared one by one: memory
	contextLines  = 3
)

// written is the structured content of the tools that write. Content and Locations are those of a
// tool call in the Agent Client Protocol, so that a program that speaks it can pass them on.
type written struct {
	Path             string      `json:"path"`
	Created          bool        `json:"created"`
	Changed          bool        `json:"changed"`
	SizeBytes        int64       `json:"size_bytes"`
	TotalLines       int         `json:"total_lines"`
	Encoding         string      `json:"encoding"`
	LineEndings      string      `json:"line_endings"`
	AddedLines       int         `json:"added_lines"`
	RemovedLines     int         `json:"removed_lines"`
	Replacements     int         `json:"replacements,omitempty"`
	Hunks            int         `json:"hunks,omitempty"`
	CreatedDirs      bool        `json:"created_dirs,omitempty"`
	Content          []diffBlock `json:"content"`
	ContentTruncated bool        `json:"content_truncated"`
	Locations        []location  `json:"locations"`
	Notes            []string    `json:"notes,omitempty"`
}

// diffBlock is a changed part of a file with the lines around it.
type diffBlock struct {
	Type    string  `json:"type"` // diff
	Path    string  `json:"path"` // absolute
	OldText *string `json:"oldText"`
	NewText string  `json:"newText"`
}

// location is a changed line of a file.
type location struct {
	Path string `json:"path"` // absolute
	Line int    `json:"line"`
}

// Notes of a result.
const (
	noteHardLinks = "hard_links_keep_old_text"
	noteWasBinary = "was_binary"
)

// answer tells what has become of a file. verb is for one that was there.
func (w *writer) answer(o *writeOutcome, verb string, out written) answer {
	out.Path, out.Created, out.Changed = w.show(o.path), o.before == nil, o.written
	out.SizeBytes, out.TotalLines, out.Encoding = o.size, countLines(o.after.body), encodingUTF8
	out.LineEndings, out.CreatedDirs = o.after.lineEndings(), o.madeDirs
	out.Content, out.Locations = []diffBlock{}, []location{}
	if o.after.bom {
		out.Encoding = encodingUTF8BOM
	}
	if out.Created {
		verb = "created"
	}
	if !o.written {
		return answer{structured: out, text: fmt.Sprintf("%q holds that text already: nothing was written", out.Path)}
	}
	if o.hardLinks {
		out.Notes = append(out.Notes, noteHardLinks)
	}
	text := ""
	switch {
	case out.Created:
		out.whole(o)
	case o.before.binary:
		out.Notes = append(out.Notes, noteWasBinary)
		out.whole(o)
	default:
		text = out.compare(o)
	}
	summary := fmt.Sprintf("%s %q: +%d -%d lines, now %d lines, %d bytes", verb, out.Path, out.AddedLines,
		out.RemovedLines,
		out.TotalLines, out.SizeBytes)
	if o.hardLinks {
		summary += "; other hard links to it keep the old text"
	}
	return answer{structured: out, text: strings.TrimSuffix(summary+"\n"+text, "\n")}
}

// whole shows a new file.
func (c *written) whole(o *writeOutcome) {
	c.AddedLines = c.TotalLines
	shown := wholeLines(o.after.body, mostDiffText)
	c.ContentTruncated = len(shown) < len(o.after.body)
	c.add(o.path, 1, nil, shown)
}

// add shows a change at a line of the file; was is nil for a new file.
func (c *written) add(path string, line int, was *string, is string) {
	c.Content = append(c.Content, diffBlock{Type: "diff", Path: path, OldText: was, NewText: is})
	c.Locations = append(c.Locations, location{path, line})
}

// compare shows what has changed in a file, and returns it as a unified diff as well.
func (c *written) compare(o *writeOutcome) string {
	before, after := o.before.body, o.after.body
	if was, is := countLines(before), countLines(after); was+is > mostDiffLines { // each line counts as changed
		c.RemovedLines, c.AddedLines, c.ContentTruncated = was, is, true
		c.Locations = append(c.Locations, location{o.path, 1})
		return ""
	}
	edits := udiff.Lines(before, after)
	for _, e := range edits {
		c.AddedLines += countLines(e.New)
		c.RemovedLines += countLines(before[e.Start:e.End])
	}
	if len(edits) > mostDiffHunks {
		edits, c.ContentTruncated = edits[:mostDiffHunks], true
	}
	u, err := udiff.ToUnifiedDiff("a/"+c.Path, "b/"+c.Path, before, edits, contextLines)
	if err != nil {
		u.Hunks, c.ContentTruncated = nil, true // cannot be: the edits come from the texts
	}
	room := mostDiffText
	for i, h := range u.Hunks {
		was, is := sides(h)
		c.Locations = append(c.Locations, location{o.path, firstChange(h)})
		if room -= len(was) + len(is); room < 0 {
			if i == 0 {
				was, is = wholeLines(was, mostDiffText/2), wholeLines(is, mostDiffText/2)
				c.Content = append(c.Content, diffBlock{Type: "diff", Path: o.path, OldText: &was, NewText: is})
			}
			u.Hunks, c.ContentTruncated = u.Hunks[:i], true
			break
		}
		c.Content = append(c.Content, diffBlock{Type: "diff", Path: o.path, OldText: &was, NewText: is})
	}
	text := u.String()
	if c.ContentTruncated {
		text += "[not all changes are shown]"
	}
	if len(edits) == 0 { // only what no line shows: a byte order mark, line endings
		c.Locations = append(c.Locations, location{o.path, 1})
	}
	return text
}

// sides are the text of a hunk before and after.
func sides(h *udiff.Hunk) (was, is string) {
	var before, after strings.Builder
	for _, line := range h.Lines {
		if line.Kind != udiff.Insert {
			before.WriteString(line.Content)
		}
		if line.Kind != udiff.Delete {
			after.WriteString(line.Content)
		}
	}
	return before.String(), after.String()
}

// firstChange is the number of the first line of the new text that a hunk has changed.
func firstChange(h *udiff.Hunk) int {
	i := slices.IndexFunc(h.Lines, func(line udiff.Line) bool { return line.Kind != udiff.Equal })
	return max(1, h.ToLine+max(0, i))
}

// wholeLines is as much of the beginning of s as is at most n bytes long, in whole lines where there are any.
func wholeLines(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if end := strings.LastIndexByte(s[:n], '\n'); end >= 0 {
		return s[:end+1]
	}
	return s[:runeBoundary([]byte(s), n)]
}
