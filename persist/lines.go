package persist

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// journalFile is what is there of a file of a journal.
type journalFile struct {
	name string
	end  int64
	time time.Time // of the last write
}

// listFiles returns the files of the journal in dir, oldest first: none where it does not exist
// yet. Of read, which says how far each was read, it takes out files that are gone.
func listFiles(dir string, read map[string]int64) ([]journalFile, error) {
	names, err := Files(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &JournalError{Op: "list journal", Path: dir, Err: err}
	}
	// A call that goes on in a newer file has its first lines in an older one. The newer file's
	// size is taken first: so the older one is then read at least as far.
	all := make([]journalFile, len(names))
	for i, name := range slices.Backward(names) {
		all[i].name = name
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			all[i].end, all[i].time = info.Size(), info.ModTime()
		}
	}
	for name := range read {
		if !slices.Contains(names, name) {
			delete(read, name)
		}
	}
	return all, nil
}

// errEnough ends the lines that somebody reads.
var errEnough = errors.New("enough")

// eachNewLine calls yield for each whole line that the journal in dir has beyond read, with its file
// and its place there, until yield returns false. It counts the line in read, and takes out files
// that are gone. The file named but is left out. A file that cannot be read does not keep it from
// the others.
func eachNewLine(dir, but string, read map[string]int64,
	yield func(f journalFile, at int64, line []byte) bool) (problem error) {
	files, err := listFiles(dir, read)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.name == but {
			continue
		}
		if f.end <= read[f.name] {
			read[f.name] = f.end // less: a line that could not be written whole was cut off
			continue
		}
		path := filepath.Join(dir, f.name)
		file, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			at := read[f.name]
			err = EachLine(io.NewSectionReader(file, at, f.end-at), func(line []byte) error {
				from := at
				at += int64(len(line) + 1)
				read[f.name] = at
				if !yield(f, from, bytes.Clone(line)) {
					return errEnough
				}
				return nil
			})
			file.Close() // it was read
		}
		if errors.Is(err, errEnough) {
			break
		}
		if err != nil && problem == nil {
			problem = &JournalError{Op: "read journal", Path: path, Err: err}
		}
	}
	return problem
}

// NewLines calls yield for each line that the journal in dir has beyond read, until yield returns
// false. read says how many bytes of each file, by its name, the caller has: NewLines counts each
// line there, and takes out files that are gone. Lines that are no JSON are counted and passed over.
// Hubs may be writing meanwhile. A journal that does not exist yet has no lines. The file named but
// is left out.
func NewLines(dir, but string, read map[string]int64, yield func(line json.RawMessage) bool) error {
	return eachNewLine(dir, but, read, func(_ journalFile, _ int64, line []byte) bool {
		return !json.Valid(line) || yield(line)
	})
}

// HasNewLines reports whether the journal in dir has bytes beyond read.
func HasNewLines(dir string, read map[string]int64) bool {
	files, _ := listFiles(dir, read)
	return slices.ContainsFunc(files, func(f journalFile) bool { return f.end > read[f.name] })
}

// Derive is Read for lines that somebody has kept: those of one call, or of several, each call's in their order.
func Derive(lines []json.RawMessage, yield func(object json.RawMessage) bool) error {
	d := deriver{open: make(map[tool.InvocationID]*derivation)}
	for _, line := range lines {
		if more, err := d.line(line, yield); err != nil || !more {
			return err
		}
	}
	return nil
}
