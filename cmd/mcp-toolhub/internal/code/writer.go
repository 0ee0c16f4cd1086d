package code

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/inode"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// mostFileBytes bounds a file before and after it is written: both are held in memory.
const mostFileBytes = 8 << 20

// Error codes of the tools that write.
const (
	codePathConflict   = "path_conflict"
	codeNoDirectory    = "directory_not_found"
	codeTooLarge       = "file_too_large"
	codePathRefused    = "path_refused"
	codeOutsideRoots   = "outside_write_roots"
	codeProtected      = "protected_path"
	codeOwner          = "owner_not_kept"
	codeWriteFailed    = "write_failed"
	codeNotText        = "not_text"
	codeEditForm       = "edits_or_unified_diff"
	codeEmptyOld       = "empty_old_text"
	codeNoChange       = "no_change"
	codeNotFound       = "text_not_found"
	codeAmbiguous      = "ambiguous_edit"
	codeOverlapping    = "overlapping_edits"
	codeInvalidPatch   = "invalid_patch"
	codeMultiFile      = "multi_file_patch"
	codeUnsupported    = "unsupported_patch"
	codePatchOtherPath = "patch_of_another_path"
	codePatchFailed    = "patch_apply_failed"
)

var errExists = errors.New("a file of that name has appeared")

// writer writes files in the directories that the operator names. A nil writer writes nothing. It
// is safe for concurrent use.
type writer struct {
	root, real string         // of the project: as the operator names it, and with links followed
	paths      target.Root    // where paths start, and which directories may be written to
	limits     *target.Limits // what holds where nobody else has looked at a path
	never      target.Globs   // is never written, whoever allows it

	// turn holds one: two calls that change one file would otherwise lose what the first has written.
	turn chan struct{}
}

// newWriter returns the writer of cfg, nil where it names no directory that may be written to.
func newWriter(cfg Config, root string) (*writer, error) {
	if len(cfg.AllowedWriteRoots) == 0 {
		return nil, nil
	}
	for _, dir := range cfg.AllowedWriteRoots {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || !filepath.IsAbs(dir) {
			return nil,
				fmt.Errorf("code: %q is no directory that can be written to: set code.allowed_write_roots to "+
					"existing directories", dir)
		}
	}
	limits, err := target.NewLimits(target.Config{}, target.HubPaths{})
	if err != nil {
		return nil, fmt.Errorf("code: %w", err)
	}
	never := append([]string{"/proc", "/sys", "/dev"}, cfg.SensitivePaths...)
	never = append(never, target.Literal(slices.Concat(cfg.SensitiveDirs, cfg.Secrets, cfg.Protected)...)...)
	w := &writer{root: root, real: root, limits: limits, turn: make(chan struct{}, 1),
		paths: target.NewRoot(root, cfg.Home).Writing(cfg.AllowedWriteRoots...)}
	if real, err := filepath.EvalSymlinks(root); err == nil {
		w.real = real
	}
	w.never, err = compileSensitive(never, cfg.Home)
	return w, err
}

// show returns a resolved path as results name it: relative to the project where it lies inside, with slashes.
func (w *writer) show(path string) string {
	if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(w.real,
		string(filepath.Separator))+string(filepath.Separator)); ok {
		return filepath.ToSlash(rest)
	}
	return filepath.ToSlash(path)
}

// aim returns where the argument path leads now, with every link followed, if that is where it led when the call was
// permitted. Where nobody has looked at the path, the toolset's own limits hold.
func (w *writer) aim(e *tool.Execution, given string) (string, error) {
	found := target.PathsOf("/path", given, w.paths)
	found[0].Twins()
	switch {
	case found[0].Fault != "":
		return "", invalid(codePathRefused, "argument \"path\" %s", found[0].Fault)
	case len(found) != 1:
		return "", invalid(codePathRefused,
			"%q is read in several ways by programs: send the path without white space at its ends, and without "+
				"\"..\" behind a symbolic link",
			hidden.Cut(given, 200))
	case strings.HasSuffix(filepath.ToSlash(given), "/"), filepath.Dir(found[0].Resolved) == found[0].Resolved:
		return "", invalid(codeIsDirectory, "%q names a directory: send the path of a file", hidden.Cut(given, 200))
	case found[0].Has(target.UnicodeTwin):
		return "", failure(tool.ClassExecutionFailed, codePathConflict,
			"%+q does not exist, but a name that reads the same in other code points does: copy the name from list_dir",
			hidden.Cut(given, 200))
	}
	path := found[0].Resolved
	if w.never.Match(path) {
		return "", failure(tool.ClassPermissionDenied, codeProtected,
			"%q is never written by this tool: it belongs to "+
				"the system, to the hub itself or to what its operator protects; leave it as it is",
			hidden.Cut(given, 200))
	}
	if slices.ContainsFunc(e.Aims, func(a tool.Aim) bool { return a.Argument == "/path" }) {
		if !slices.Contains(e.Aims, tool.Aim{Argument: "/path", Path: path}) {
			return "", target.ErrChanged
		}
		return path, nil
	}
	if finding, held := target.Worst(w.limits.Judge(found, w.paths)); held {
		f := &tool.Failure{Class: tool.ClassPermissionDenied, Message: finding.Reason +
			", and nobody is asked for permission here: choose another path"}
		if finding.Code == target.OutsideRoots {
			f.Class, f.Code = tool.ClassSandboxViolation, codeOutsideRoots
		}
		return "", f
	}
	return path, nil
}

// change describes the new text of one file.
type change struct {
	given      string
	createDirs bool // make the directories that are missing
	onlyNew    bool // refuse a file that is there

	// make returns what the file at path is to hold; before is nil where there is none.
	make func(path string, before *document) (document, error)
}

// writeOutcome describes a file after a change.
type writeOutcome struct {
	path      string // resolved
	before    *document
	after     document
	size      int64
	written   bool // the file has changed
	madeDirs  bool
	hardLinks bool // other names of the file keep the old text
}

// apply does what c says, one call at a time. Where it returns an error the file is as it was.
func (w *writer) apply(ctx context.Context, e *tool.Execution, c *change) (*writeOutcome, error) {
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var o *writeOutcome
	path, err := w.aim(e, c.given)
	if err == nil {
		o, err = put(ctx, path, c)
	}
	if err != nil {
		return nil, writeFailure(c.given, err)
	}
	return o, nil
}

// put writes the file at path, resolved, following no link on the way.
func put(ctx context.Context, path string, c *change) (*writeOutcome, error) {
	d, err := openDestination(path, c)
	if err != nil {
		return nil, err
	}
	defer d.close()
	o := &writeOutcome{path: path, hardLinks: d.names > 1}
	if d.file != nil {
		if o.before, err = d.read(); err != nil {
			return nil, err
		}
	}
	if o.after, err = c.make(path, o.before); err != nil {
		return nil, err
	}
	data := o.after.bytes()
	o.size = int64(len(data))
	if len(data) > mostFileBytes {
		return nil, invalid(codeTooLarge, "%q would have %d bytes, more than %d: split it into several files",
			hidden.Cut(c.given, 200), len(data), mostFileBytes)
	}
	if d.file != nil && string(data) == string(d.raw) {
		return o, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if d.dir == nil {
		o.madeDirs = true
		if d.dir, err = target.MakeDir(filepath.Dir(path), 0o777); err != nil {
			return nil, err
		}
	}
	o.written = true
	return o, d.replace(data)
}

// writeFailure says why path, as the caller wrote it, could not be written.
func writeFailure(path string, err error) error {
	var known *tool.Failure
	f, message := &tool.Failure{Class: tool.ClassExecutionFailed, Cause: err}, ""
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, target.ErrChanged), errors.Is(err, errChanged), errors.Is(err, syscall.ELOOP):
		f.Code = codePathChanged
		message = "%q has changed since the call was permitted, so that nothing was written: look at it again, and " +
			"call again"
	case errors.Is(err, errExists):
		f.Code, message = codePathConflict,
			"%q has appeared in the meantime, so that nothing was written: read it first"
	case errors.Is(err, fs.ErrNotExist):
		f.Code = codeNoDirectory
		message = "the directory of %q does not exist: set create_dirs of write_file, or choose another path"
	case errors.Is(err, syscall.ENOTDIR):
		f.Class, f.Code = tool.ClassInvalidArguments, codeNotDirectory
		message = "a part of %q is a file and no directory: choose another path"
	case errors.Is(err, target.ErrOther):
		f.Class, f.Code = tool.ClassInvalidArguments, codeNotRegular
		message = "%q is, or leads through, something else than a regular file in directories: choose another path"
	case errors.Is(err, inode.ErrOwner):
		f.Code = codeOwner
		message = "%q belongs to another user or group and would not after writing: ask the person to change its owner"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		f.Code = codeAccessDenied
		message = "the system denies writing %q: choose another path, or ask the person to change its mode"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.ENAMETOOLONG):
		f.Code = codeWriteFailed
		message = "%q could not be written, and is as it was: the disk is full or the name too long"
	default:
		f.Code, message = codeWriteFailed, "%q could not be written, and is as it was: check the path with list_dir"
	}
	f.Message = fmt.Sprintf(message, hidden.Cut(path, 200))
	return f
}
