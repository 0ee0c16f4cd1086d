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
)

// Read calls yield for every record of the journal in dir, file by file, oldest file first, until yield returns false.
// A line is yield's to keep. Hubs may be writing meanwhile: a last line without its line break is not there yet, and a
// file that is removed is passed over. Lines that are no JSON, which a failing disk may leave, are passed over too;
// they make Read return an error that names the first of them after everything else was read.
func Read(dir string, yield func(line json.RawMessage) bool) error {
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

// readFile is Read for one file. more is false once yield has had enough.
func readFile(path string, yield func(json.RawMessage) bool) (more bool, err error) {
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
		if !json.Valid(line) {
			if damage == nil {
				damage = fmt.Errorf("read journal: %s:%d is no JSON: check the disk; the other lines are intact", path, number)
			}
			continue
		}
		if !yield(line) {
			return false, damage
		}
	}
}
