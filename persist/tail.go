package persist

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

var errNoJSON = errors.New("is no JSON: check the disk")

// Read calls yield for every object of Agent Tool that the journal in dir holds, each as one line
// of JSON, file by file, oldest file first, until yield returns false. Objects of a call are
// derived from its call records: those of its steps in their order, under ids that are the same
// whenever they are read.
//
// A line is yield's to keep. Hubs may be writing meanwhile: a last line without its line break is not there yet, and a
// file that is removed is passed over. Lines that are no JSON, which a failing disk may leave, are passed over too;
// they make Read return an error that names the first of them after everything else was read.
func Read(dir string, yield func(object json.RawMessage) bool) error {
	if _, err := Files(dir); err != nil {
		return &JournalError{Op: "list journal", Path: dir, Err: err}
	}
	return NewTail(dir, time.Time{}, "").Next(func(e Entry) bool { return yield(e.Object) })
}

// Tail reads a journal as Read does, and then what is added to it, also by several hubs and in new
// files. One goroutine uses it at a time.
type Tail struct {
	dir     string
	since   time.Time // calls that ended in a file that nobody has written to since then are passed over
	about   []byte    // lines without this text are passed over
	deriver deriver
	read    map[string]int64 // of each file, by its name: bytes
}

// Entry is one object of a journal, with the line that it stands in or is derived from, and the
// name of the file of that line.
type Entry struct {
	Object, Line json.RawMessage
	File         string
}

// clocksDiffer is how much the times of files may be behind: those of some file systems are coarse,
// and those of others are another machine's.
const clocksDiffer = time.Minute

// NewTail returns a Tail of the journal in dir that begins with its oldest file. Objects of calls
// that had ended before since may be missing; a zero since misses none. Where about is not "", the
// Tail knows only lines with that text.
func NewTail(dir string, since time.Time, about string) *Tail {
	return &Tail{dir: dir, since: since, about: []byte(about), read: make(map[string]int64),
		deriver: deriver{open: make(map[tool.InvocationID]*derivation)}}
}

// Next calls yield for every object that has come since the last Next, until yield returns false:
// then the Tail is of no use any more. Objects of one invocation come in their order. As of Read,
// an error names the first line that cannot be read, and all others were read. A journal that does
// not exist yet has no objects.
func (t *Tail) Next(yield func(Entry) bool) error {
	var damage error
	err := eachNewLine(t.dir, "", t.read, func(f journalFile, at int64, line []byte) bool {
		old := f.time.Before(t.since.Add(-clocksDiffer)) // nothing in it is later than since
		if !bytes.Contains(line, t.about) || old && t.isPast(line) {
			return true
		}
		more, err := true, errNoJSON
		if json.Valid(line) {
			more, err = t.deriver.line(line, func(object json.RawMessage) bool {
				return yield(Entry{object, line, f.name})
			})
		}
		if damage == nil && err != nil {
			damage = fmt.Errorf("read journal: %s, byte %d: the line %w; the other lines are intact",
				filepath.Join(t.dir, f.name), at, err)
		}
		return more
	})
	return cmp.Or(err, damage)
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
