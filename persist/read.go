package persist

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

var errNoJSON = errors.New("is no JSON: check the disk")

// Read calls yield for every object of Agent Tool that the journal in dir holds, each as one line
// of JSON, file by file, oldest file first, until yield returns false. Objects of a call are
// derived from its call records: those of its steps in their order, under ids that are the same
// whenever they are read. Journals of versions without call records hold the objects themselves.
//
// A line is yield's to keep. Hubs may be writing meanwhile: a last line without its line break is not there yet, and a
// file that is removed is passed over. Lines that are no JSON, which a failing disk may leave, are passed over too;
// they make Read return an error that names the first of them after everything else was read.
func Read(dir string, yield func(object json.RawMessage) bool) error {
	d := deriver{open: make(map[tool.InvocationID]*derivation)}
	return ReadLines(dir, func(line json.RawMessage) (bool, error) { return d.line(line, yield) })
}

// ReadLines is Read for the lines as they are written. The first error of yield is returned once everything else
// was read.
func ReadLines(dir string, yield func(line json.RawMessage) (more bool, err error)) error {
	names, err := journalNames(dir)
	if err != nil {
		return &JournalError{Op: "list journal", Path: dir, Err: err}
	}
	var damage error
	for _, name := range names {
		path := filepath.Join(dir, name)
		more, err := readFile(path, yield)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case damage == nil && err != nil:
			damage = err
		}
		if !more {
			break
		}
	}
	return damage
}

// readFile is ReadLines for one file. more is false once yield has had enough.
func readFile(path string, yield func(json.RawMessage) (bool, error)) (more bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return true, &JournalError{Op: "open journal", Path: path, Err: err}
	}
	defer file.Close()
	var damage error
	lines := bufio.NewReaderSize(file, 64<<10)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		switch {
		case err == io.EOF:
			return true, damage
		case err != nil:
			return true, &JournalError{Op: "read journal", Path: path, Err: err}
		}
		line = line[:len(line)-1]
		more, err := true, errNoJSON
		if json.Valid(line) {
			more, err = yield(line)
		}
		if damage == nil && err != nil {
			damage = fmt.Errorf("read journal: %s:%d %w; the other lines are intact", path, number, err)
		}
		if !more {
			return false, damage
		}
	}
}
