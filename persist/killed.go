package persist

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// CodeHubKilled is the error_code of a call whose hub was killed.
const CodeHubKilled = "hub_killed"

// EndKilled writes the last lines of calls whose hubs were killed: of all that have lines in closed
// files of the journal in dir, and no last one. A call of a living hub is not touched, because that
// holds every file with its calls. A last line goes to the end of the call's own file, under the
// lock of that file: so each call gets one, however many hubs do this at the same time.
//
// Only files are read that have grown since they were last looked at. Where ctx ends first, the next hub goes on.
func EndKilled(ctx context.Context, dir string) (ended int, err error) {
	// else two hubs could have a part of the same call each
	unlock, err := statefile.Lock(filepath.Join(dir, settledFile))
	if err != nil {
		return 0, err
	}
	defer unlock()
	names, err := Files(dir)
	if err != nil {
		return 0, &JournalError{Op: "list journal", Path: dir, Err: err}
	}
	k := killed{dir: dir, open: make(map[tool.InvocationID]*openCall)}
	defer k.release()
	known, others := readSettled(dir), []string(nil)
	for _, name := range names {
		if f := takeClosed(dir, name, known[name]); f != nil {
			k.files = append(k.files, f)
		} else {
			others = append(others, name)
		}
	}
	if len(k.files) == 0 {
		return 0, nil
	}
	err = k.look(ctx, others)
	if err == nil {
		ended, err = k.end(time.Now())
	}
	return ended, errors.Join(err, k.save())
}

// killed is one EndKilled.
type killed struct {
	dir   string
	files []*closedFile // oldest first
	open  map[tool.InvocationID]*openCall
}

// closedFile is a journal file that no hub holds, and this process does now.
type closedFile struct {
	name    string
	file    *os.File
	from    int64 // what comes before is settled
	size    int64
	settled bool // no call in it is open
}

// openCall is a call without a last line so far.
type openCall struct {
	callRecord               // its last line, with the input of the first one
	runs       int           // how often it began to run
	in         []*closedFile // files with its lines
	last       *closedFile   // with the last one; nil where somebody else holds that
}

// takeClosed takes hold of a file that has a part that is not settled; nil where there is none, or somebody holds it.
func takeClosed(dir, name string, from int64) *closedFile {
	path := filepath.Join(dir, name)
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() == from {
		return nil
	}
	file, locked, err := openExclusive(path, false)
	if err != nil {
		return nil
	}
	f := &closedFile{name: name, file: file, from: from}
	if f.size, err = cutTail(file); err != nil || !locked {
		closeHeld(file) // nothing was written
		return nil
	}
	if f.from < 0 || f.from > f.size { // it is another file of that name
		f.from = 0
	}
	return f
}

func (k *killed) release() {
	for _, f := range k.files {
		closeHeld(f.file) // what was written is synced
	}
}

// look finds the open calls: in the files that are held, and where there are any, also what other files know of them.
func (k *killed) look(ctx context.Context, others []string) error {
	for i, f := range k.files {
		err := EachLine(io.NewSectionReader(f.file, f.from, f.size-f.from), func(line []byte) error {
			k.take(line, f)
			return ctx.Err()
		})
		if err != nil {
			return fmt.Errorf("look for calls of killed hubs in %q: %w", f.name, err)
		}
		if len(k.open) == 0 {
			for _, done := range k.files[:i+1] {
				done.settled = true
			}
		}
	}
	for i := 0; i < len(others) && len(k.open) > 0; i++ {
		file, err := os.Open(filepath.Join(k.dir, others[i]))
		if err != nil {
			continue // it was removed
		}
		err = EachLine(file, func(line []byte) error {
			k.compare(line, others[i])
			return ctx.Err()
		})
		if err = errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("look for calls of killed hubs in %q: %w", others[i], err)
		}
	}
	return nil
}

// idOf returns whose call record the line is; "" where it is none. ended says whether it is the last one.
func idOf(line []byte) (id tool.InvocationID, ended bool) {
	if !bytes.HasPrefix(line, []byte(`{"object":"`+ObjectCall+`"`)) {
		return "", false
	}
	_, ended = rawjson.Get(line, "ended_us")
	return tool.InvocationID(rawjson.Text(line, "invocation_id")), ended
}

// take notes a line of a file that is held.
func (k *killed) take(line []byte, f *closedFile) {
	id, ended := idOf(line)
	if ended {
		delete(k.open, id)
		return
	}
	var l callRecord
	if id == "" || json.Unmarshal(line, &l) != nil || l.Version != callVersion {
		return
	}
	c := k.open[id]
	if c == nil {
		c = new(openCall)
		k.open[id] = c
	} else {
		l.CallInput = c.CallInput // which the first line has
	}
	for _, step := range l.Steps[max(0, min(len(l.Steps), c.From+len(c.Steps)-l.From)):] {
		if bytes.HasPrefix(step, []byte(`["`+tool.StatusRunning+`"`)) {
			c.runs++
		} else if bytes.HasPrefix(step, []byte(`["`+stepNotStarted+`"`)) {
			c.runs--
		}
	}
	c.callRecord, c.last = l, f
	if !slices.Contains(c.in, f) {
		c.in = append(c.in, f)
	}
}

// compare notes what a line in another file says of an open call: it may have ended there, or go on there.
func (k *killed) compare(line []byte, name string) {
	id, ended := idOf(line)
	c := k.open[id]
	switch {
	case c == nil:
	case ended:
		delete(k.open, id)
	case c.last != nil && name > c.last.name:
		c.last = nil
	case len(c.Model) == 0 && c.ModelRef == "":
		var l callRecord
		if json.Unmarshal(line, &l) == nil {
			c.CallInput = l.CallInput
		}
	}
}

// end writes the last lines, and returns how many.
func (k *killed) end(now time.Time) (ended int, err error) {
	lines, open := make(map[*closedFile][]byte), make(map[*closedFile]bool)
	for _, c := range k.open {
		if c.last == nil {
			for _, f := range c.in {
				open[f] = true
			}
			continue
		}
		line, err := appendJSON(lines[c.last], c.ending(now))
		if err != nil {
			return 0, err
		}
		lines[c.last] = append(line, '\n')
		ended++
	}
	for _, f := range k.files {
		if text := lines[f]; text != nil {
			_, err = f.file.WriteAt(text, f.size)
			if err = errors.Join(err, f.file.Sync()); err != nil {
				_ = f.file.Truncate(f.size) // where that fails, half a line is left, which the next one cuts off
				return 0, &JournalError{Op: "write journal", Path: filepath.Join(k.dir, f.name), Err: err}
			}
			f.size += int64(len(text))
		}
	}
	for _, f := range k.files {
		f.settled = !open[f]
	}
	return ended, nil
}

// ending is the last line of the call.
func (c *openCall) ending(now time.Time) *callRecord {
	us := max(0, now.Sub(c.Created).Microseconds())
	l := c.callRecord
	l.Status, l.EndedUS, l.From = tool.StatusFailed, &us, c.From+len(c.Steps)
	l.Steps = []json.RawMessage{fmt.Appendf(nil, `["%s",%d]`, tool.StatusFailed, us)}
	l.Error = &tool.Error{ErrorCode: CodeHubKilled, ErrorClass: tool.ClassExecutionFailed, Recoverability: "retry",
		Message: "the hub was killed before this call ran: nothing has happened; call the tool again"}
	if c.runs > 0 || c.Status == tool.StatusRunning || c.Status == tool.StatusNeedsInput {
		l.Error.Recoverability, l.Error.OutcomeUnknown = "none", true
		l.Error.Message = "the hub was killed while this call ran: nobody knows what it has done; look before you " +
			"call the tool again"
	}
	return &l
}

// EachLine calls take for every whole line of r, without its line break, until that returns an error.
// The line is take's while that runs.
func EachLine(r io.Reader, take func(line []byte) error) error {
	lines := bufio.NewReaderSize(r, 256<<10)
	var long []byte
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			long = append(long, line...)
			continue
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if len(long) > 0 {
			long = append(long, line...)
			line = long
		}
		if err := take(line[:len(line)-1]); err != nil {
			return err
		}
		long = long[:0]
	}
}

// settledFile says, beside the journal's files, up to which size no call of each is open. It may be
// removed: then all is read again.
const settledFile = "settled.json"

func readSettled(dir string) map[string]int64 {
	all := make(map[string]int64)
	if text, err := os.ReadFile(filepath.Join(dir, settledFile)); err == nil {
		_ = json.Unmarshal(text, &all) // what cannot be read counts as not settled
	}
	return all
}

// save notes what is settled now. The files are still held.
func (k *killed) save() error {
	now := make(map[string]int64)
	for _, f := range k.files {
		if f.settled {
			now[f.name] = f.size
		}
	}
	return saveSettled(k.dir, now)
}

// saveSettled is called under the lock of the file.
func saveSettled(dir string, now map[string]int64) error {
	if len(now) == 0 {
		return nil
	}
	names, err := Files(dir)
	if err != nil {
		return err
	}
	all := readSettled(dir)
	for name := range all {
		if !slices.Contains(names, name) {
			delete(all, name)
		}
	}
	for name, size := range now {
		all[name] = size
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return statefile.WriteCache(filepath.Join(dir, settledFile), text)
}

// What is not settled of a file that a hub goes on with is read at its start. So it is at most
// tailBytes, and from noteBytes on what was read is noted.
const (
	tailBytes = 1 << 20
	noteBytes = 256 << 10
)

// isSettled reports whether no call is open in the file, which is held: neither up to the size that
// is settled, nor in a short rest.
func isSettled(from int64, file *os.File, size int64) bool {
	if from < 0 || from > size {
		from = 0
	}
	if size-from > tailBytes {
		return false
	}
	k := killed{open: make(map[tool.InvocationID]*openCall)}
	f := &closedFile{}
	err := EachLine(io.NewSectionReader(file, from, size-from), func(line []byte) error {
		k.take(line, f)
		return nil
	})
	return err == nil && len(k.open) == 0
}

// settles is isSettled for a file that a hub is to go on with. It notes what it has read.
func settles(dir, name string, file *os.File, size int64) bool {
	from := readSettled(dir)[name]
	if !isSettled(from, file, size) {
		return false
	}
	if size-from >= noteBytes {
		if unlock, err := statefile.Lock(filepath.Join(dir, settledFile)); err == nil {
			_ = saveSettled(dir, map[string]int64{name: size}) // where that fails, it is read again
			unlock()
		}
	}
	return true
}
