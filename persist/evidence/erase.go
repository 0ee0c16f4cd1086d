package evidence

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// erasingSuffix is that of the plan by which lines of a journal file are erased. Once it is there,
// whoever holds the lock of the chains carries it out: so a kill in between leaves nothing half
// done for long.
const erasingSuffix = ".erasing"

// Erase takes the values that persist.Erasable means out of the lines of the journal that are of
// one of the invocations, and returns how many lines it has changed. Lines keep their places and
// lengths, so hubs may write and read the journal meanwhile. The chains keep the digests of what is
// gone, without the salts by which it could be guessed: so they still verify. Nothing changes where
// it was erased before.
func (k *Keeper) Erase(of func(tool.InvocationID) bool) (lines int, err error) {
	extended := k.Extend() // a file that cannot be taken in is erased all the same
	unlock, err := statefile.Lock(filepath.Join(k.dir, "chain"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, errors.Join(err, extended)
	}
	defer unlock()
	names, err := persist.Files(k.dir)
	if err = errors.Join(err, k.carryOut()); err != nil {
		return 0, err
	}
	for _, name := range names {
		n, err := k.eraseIn(name, of)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return lines, fmt.Errorf("erase lines of %q: %w", name, err)
		}
		lines += n
	}
	return lines, extended
}

// eraseIn is Erase for one file.
func (k *Keeper) eraseIn(name string, of func(tool.InvocationID) bool) (changed int, err error) {
	path := filepath.Join(k.dir, name)
	plan, changed, err := planOf(path, of)
	if changed == 0 || err != nil {
		return 0, err
	}
	if err := errors.Join(statefile.Write(path+erasingSuffix, plan), statefile.SyncDir(k.dir)); err != nil {
		return 0, err
	}
	return changed, k.carryOut()
}

// planOf makes the plan for the file at path: a line for each line that changes, which is its
// offset and what stands there from now on, and after these the whole chain as it is from now on.
func planOf(path string, of func(tool.InvocationID) bool) (plan []byte, changed int, err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0) // as the plan needs it
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	proofs, err := os.ReadFile(path + Suffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	p := planning{of: of}
	lines := bufio.NewReaderSize(file, 64<<10)
	chain, err := rewrite(proofs, lines, p.take)
	for err == nil { // what is in no chain
		e := entry{Salt: make([]byte, saltSize)}
		_, _ = rand.Read(e.Salt)
		var line []byte
		if line, err = lines.ReadBytes('\n'); err == nil {
			err = p.take(&e, line)
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	p.text.Write(chain)
	return p.text.Bytes(), p.changed, nil
}

// planning is one planOf.
type planning struct {
	of      func(tool.InvocationID) bool
	at      int64 // the offset of the next line
	text    bytes.Buffer
	changed int
}

// take looks at a line, which e proves, and makes e its tombstone where it changes.
func (p *planning) take(e *entry, line []byte) error {
	from := p.at
	p.at += int64(len(line))
	line = bytes.TrimSuffix(line, []byte{'\n'})
	id, erasable := persist.Erasable(line)
	if erasable == nil || !p.of(id) {
		return nil
	}
	out := e.erase(line, true, erasable)
	if bytes.Equal(bytes.TrimRight(out, " "), bytes.TrimRight(line, " ")) {
		return nil
	}
	p.changed++
	p.text.Write(append(strconv.AppendInt(nil, from, 10), ' '))
	p.text.Write(append(out, bytes.Repeat([]byte{' '}, len(line)-len(out))...)) // white space is in no digest
	return p.text.WriteByte('\n')
}

// carryOut does what plans say. It is called with the lock of the chains held.
func (k *Keeper) carryOut() (err error) {
	plans, _ := filepath.Glob(filepath.Join(k.dir, "*"+erasingSuffix))
	for _, plan := range plans {
		err = errors.Join(err, carryOut(plan))
	}
	return err
}

func carryOut(plan string) error {
	text, err := os.ReadFile(plan)
	if err != nil {
		return err
	}
	path := plan[:len(plan)-len(erasingSuffix)]
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Remove(plan)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	for len(text) > 0 && text[0] != '{' {
		line, rest, _ := bytes.Cut(text, []byte{'\n'})
		at, line, _ := bytes.Cut(line, []byte{' '})
		offset, err := strconv.ParseInt(string(at), 10, 64)
		if err == nil {
			_, err = file.WriteAt(line, offset)
		}
		if err != nil {
			return fmt.Errorf("carry out %q: %w", plan, err)
		}
		text = rest
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if len(text) > 0 { // the chain
		if err := statefile.Write(path+Suffix, text); err != nil {
			return err
		}
	}
	if err := os.Remove(plan); err != nil {
		return err
	}
	return statefile.SyncDir(filepath.Dir(plan))
}
