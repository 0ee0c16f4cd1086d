package persist

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Tail reads a journal as Read does, and then what is added to it, also by several hubs and in new files. One goroutine uses it
// at a time.
type Tail struct {
	dir     string
	since   time.Time // calls that ended in a file that nobody has written to since then are passed over
	about   []byte    // lines without this text are passed over
	deriver deriver
	read    map[string]int64 // of each file, by its name: bytes
}

// Entry is one object of a journal, with the line that it stands in or is derived from, and the name of the file of that line.
type Entry struct {
	Object, Line json.RawMessage
	File         string
}

// clocksDiffer is how much the times of files may be behind: those of some file systems are coarse, and those of others are another
// machine's.
const clocksDiffer = time.Minute

// NewTail returns a Tail of the journal in dir that begins with its oldest file. Objects of calls that had ended before since may be
// missing; a zero since misses none. Where about is not "", the Tail knows only lines with that text.
func NewTail(dir string, since time.Time, about string) *Tail {
	return &Tail{dir: dir, since: since, about: []byte(about), read: make(map[string]int64),
		deriver: deriver{open: make(map[tool.InvocationID]*derivation)}}
}

// Next calls yield for every object that has come since the last Next, until yield returns false: then the Tail is of no use any
// more. Objects of one invocation come in their order. As of Read, an error names the first line that cannot be read, and
// all others were read. A journal that does not exist yet has no objects.
func (t *Tail) Next(yield func(Entry) bool) error {
	names, err := journalNames(t.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &JournalError{Op: "list journal", Path: t.dir, Err: err}
	}
	// A call that goes on in a newer file has its first lines in an older one. The newer file's size is taken first: so the older
	// one is then read at least as far.
	ends, times := make([]int64, len(names)), make([]time.Time, len(names))
	for i, name := range slices.Backward(names) {
		if info, err := os.Stat(filepath.Join(t.dir, name)); err == nil {
			ends[i], times[i] = info.Size(), info.ModTime()
		}
	}
	for name := range t.read {
		if !slices.Contains(names, name) {
			delete(t.read, name)
		}
	}
	var damage error
	for i, name := range names {
		more, err := t.file(name, ends[i], times[i].Before(t.since.Add(-clocksDiffer)), yield)
		if damage == nil && err != nil && !errors.Is(err, fs.ErrNotExist) {
			damage = err
		}
		if !more {
			break
		}
	}
	return damage
}

// file reads what is new of a file, up to its size at the time. old says that nothing in it is later than since.
func (t *Tail) file(name string, end int64, old bool, yield func(Entry) bool) (more bool, err error) {
	from := t.read[name]
	if end <= from {
		t.read[name] = end // less: a line that could not be written whole was cut off
		return true, nil
	}
	path := filepath.Join(t.dir, name)
	file, err := os.Open(path)
	if err != nil {
		return true, &JournalError{Op: "open journal", Path: path, Err: err}
	}
	defer file.Close()
	var damage error
	lines := bufio.NewReaderSize(io.NewSectionReader(file, from, end-from), 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		switch {
		case err == io.EOF:
			return true, damage
		case err != nil:
			return true, &JournalError{Op: "read journal", Path: path, Err: err}
		}
		at := t.read[name]
		t.read[name] += int64(len(line))
		if line = line[:len(line)-1]; !bytes.Contains(line, t.about) || old && t.isPast(line) {
			continue
		}
		more, err := true, errNoJSON
		if json.Valid(line) {
			more, err = t.deriver.line(line, func(object json.RawMessage) bool { return yield(Entry{object, line, name}) })
		}
		if damage == nil && err != nil {
			damage = fmt.Errorf("read journal: %s, byte %d: the line %w; the other lines are intact", path, at, err)
		}
		if !more {
			return false, damage
		}
	}
}

// isPast reports whether a line is the only one, so far, of a call that has ended.
func (t *Tail) isPast(line []byte) bool {
	if !bytes.HasPrefix(line, []byte(callPrefix)) {
		return false
	}
	id, _ := rawjson.GetString(line, "invocation_id")
	_, ended := rawjson.Get(line, "ended_us")
	return ended && t.deriver.open[tool.InvocationID(id)] == nil
}
