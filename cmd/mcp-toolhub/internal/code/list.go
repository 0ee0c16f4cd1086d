package code

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const (
	defaultEntries = 200
	mostEntries    = 1000

	// mostDirEntries bounds what is held of one directory; entries past it are as good as cut by the limit.
	mostDirEntries = 200_000
)

// Why a listed entry was not looked into.
const (
	noteSensitive  = "sensitive"
	noteUnreadable = "unreadable"
	noteGit        = "git_internal"
)

// dirEntry is one entry of list_dir.
type dirEntry struct {
	Path   string `json:"path"` // relative to the listed directory
	Type   string `json:"type"`
	Size   *int64 `json:"size_bytes,omitempty"` // of regular files
	Target string `json:"target,omitempty"`     // of symbolic links
	Note   string `json:"note,omitempty"`
}

// dirContent is the structured content of list_dir.
type dirContent struct {
	Path      string     `json:"path"`
	Recursive bool       `json:"recursive"`
	Entries   []dirEntry `json:"entries"`
	Truncated bool       `json:"truncated"`
}

func (t *Toolset) listDir(ctx context.Context, e *tool.Execution) (answer, error) {
	args := struct {
		Path      string
		Recursive bool
		Limit     integer
	}{Path: ".", Limit: defaultEntries}
	if err := readArguments(e, &args); err != nil {
		return answer{}, err
	}
	base, err := t.locate(args.Path)
	if err != nil {
		return answer{}, err
	}
	l := lister{in: t.reading(e), base: base, limit: int(args.Limit),
		out: dirContent{Path: t.show(base), Recursive: args.Recursive, Entries: []dirEntry{}}}
	if err := l.walk(ctx, args.Recursive); err != nil {
		return answer{}, openFailure(args.Path, err)
	}
	note := ""
	if l.out.Truncated {
		note = fmt.Sprintf("[the first %d entries; more exist: list a directory below, or raise limit up to %d]",
			len(l.out.Entries), mostEntries)
	}
	return answer{text: l.out.text(), note: note, structured: l.out}, nil
}

// lister lists breadth first, so that a limit cuts what lies deep and not what sorts late.
type lister struct {
	in    *reading
	base  string
	limit int
	out   dirContent
}

// walk lists the base and, where recursive, what lies below. Only a failure at the base itself is an error.
func (l *lister) walk(ctx context.Context, recursive bool) error {
	top, err := l.in.first(l.base)
	if err != nil {
		return err
	}
	names, more, err := readDir(ctx, top)
	if err != nil {
		return err
	}
	l.add("", names, more)
	if !recursive {
		return nil
	}
	for i := 0; i < len(l.out.Entries) && !l.out.Truncated; i++ {
		e := l.out.Entries[i]
		if e.Type != "directory" || e.Note != "" {
			continue
		}
		if path.Base(e.Path) == ".git" { // thousands of objects that tell nothing
			l.out.Entries[i].Note = noteGit
			continue
		}
		d, err := l.in.below(filepath.Join(l.base, filepath.FromSlash(e.Path)))
		if err == nil {
			names, more, err = readDir(ctx, d)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errSensitive):
			l.out.Entries[i].Note = noteSensitive
		case err != nil:
			l.out.Entries[i].Note = noteUnreadable
		default:
			l.add(e.Path, names, more)
		}
	}
	return nil
}

// add appends the entries of directory dir until the limit.
func (l *lister) add(dir string, names []fs.DirEntry, more bool) {
	for _, name := range names {
		if len(l.out.Entries) >= l.limit {
			l.out.Truncated = true
			return
		}
		l.out.Entries = append(l.out.Entries, l.entry(path.Join(dir, name.Name()), name))
	}
	l.out.Truncated = l.out.Truncated || more
}

func (l *lister) entry(rel string, d fs.DirEntry) dirEntry {
	full := filepath.Join(l.base, filepath.FromSlash(rel))
	e := dirEntry{Path: strings.ToValidUTF8(rel, "\uFFFD"), Type: "other"}
	switch d.Type() {
	case 0:
		e.Type = "file"
	case fs.ModeDir:
		e.Type = "directory"
	case fs.ModeSymlink:
		e.Type = "symlink"
	}
	if l.in.sensitive.Match(full) || l.in.sensitive.Match(filepath.Join(l.in.top, filepath.FromSlash(rel))) {
		e.Note = noteSensitive
		return e
	}
	switch e.Type {
	case "file":
		if info, err := d.Info(); err == nil {
			e.Size = new(info.Size())
		}
	case "symlink":
		if target, err := os.Readlink(full); err == nil {
			e.Target = hidden.Cut(filepath.ToSlash(strings.ToValidUTF8(target, "\uFFFD")), 1024)
		}
	}
	return e
}

// text is one entry a line.
func (c *dirContent) text() string {
	if len(c.Entries) == 0 {
		return "(empty directory)"
	}
	var b strings.Builder
	for _, e := range c.Entries {
		b.WriteString(e.Path)
		switch {
		case e.Type == "directory":
			b.WriteString("/")
		case e.Target != "":
			b.WriteString(" -> " + e.Target)
		}
		if e.Note != "" {
			b.WriteString(" [" + e.Note + "]")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// readDir returns the entries of the directory d sorted by name, and whether there are more than
// may be held. It closes d.
func readDir(ctx context.Context, d *opened) (entries []fs.DirEntry, more bool, err error) {
	defer d.Close()
	if !d.info.IsDir() {
		return nil, false, errNotDirectory
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		part, err := d.ReadDir(1024)
		entries = append(entries, part...)
		if more = len(entries) > mostDirEntries; more || errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, false, err
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, more, nil
}
