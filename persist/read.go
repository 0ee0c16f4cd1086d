package persist

import (
	"encoding/json"
	"errors"
	"time"
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
	if _, err := journalNames(dir); err != nil {
		return &JournalError{Op: "list journal", Path: dir, Err: err}
	}
	return NewTail(dir, time.Time{}, "").Next(func(e Entry) bool { return yield(e.Object) })
}
