package persist

import (
	"bufio"
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
	names, err := journalNames(dir)
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

// eachLineOf calls yield for each whole line of the file in dir from the offset from on, with the
// offset after the line, until yield returns false.
func eachLineOf(dir string, f journalFile, from int64, yield func(line []byte, next int64) bool) (more bool,
	err error) {
	path := filepath.Join(dir, f.name)
	file, err := os.Open(path)
	if err != nil {
		return true, &JournalError{Op: "open journal", Path: path, Err: err}
	}
	defer file.Close()
	lines := bufio.NewReaderSize(io.NewSectionReader(file, from, f.end-from), 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		switch {
		case err == io.EOF:
			return true, nil
		case err != nil:
			return true, &JournalError{Op: "read journal", Path: path, Err: err}
		}
		from += int64(len(line))
		if !yield(line[:len(line)-1], from) {
			return false, nil
		}
	}
}

// NewLines calls yield for each line that the journal in dir has beyond read, until yield returns
// false. read says how many bytes of each file, by its name, the caller has: NewLines counts each
// line there once yield has had it, and takes out files that are gone. Lines that are no JSON are
// counted and passed over. Hubs may be writing meanwhile. A journal that does not exist yet has no
// lines. The file named but is left out.
func NewLines(dir, but string, read map[string]int64, yield func(line json.RawMessage) bool) error {
	files, err := listFiles(dir, read)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.name == but || f.end <= read[f.name] {
			continue
		}
		more, err := eachLineOf(dir, f, read[f.name], func(line []byte, next int64) bool {
			more := !json.Valid(line) || yield(line)
			read[f.name] = next
			return more
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !more {
			return nil
		}
	}
	return nil
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
