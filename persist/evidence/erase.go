package evidence

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
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
	p := planning{of: of, lines: bufio.NewReaderSize(file, 64<<10), hash: &hasher{}}
	var chain bytes.Buffer
	for proof := range bytes.Lines(proofs) {
		var e entry
		if bytes.HasPrefix(proof, []byte(headPrefix)) || json.Unmarshal(proof, &e) != nil {
			chain.Write(proof)
			continue
		}
		changes, _, err := p.next(&e)
		if err != nil {
			return nil, 0, err
		}
		if !changes {
			chain.Write(proof)
		} else if err := writeLine(&chain, &e); err != nil {
			return nil, 0, err
		}
	}
	for more := true; more; { // what is in no chain
		e := entry{Salt: make([]byte, saltSize)}
		_, _ = rand.Read(e.Salt)
		if _, more, err = p.next(&e); err != nil {
			return nil, 0, err
		}
	}
	p.text.Write(chain.Bytes())
	return p.text.Bytes(), p.changed, nil
}

// planning is one planOf.
type planning struct {
	of      func(tool.InvocationID) bool
	lines   *bufio.Reader
	hash    *hasher
	at      int64 // the offset of the next line
	text    bytes.Buffer
	changed int
}

// next looks at the next line, which e proves, and makes e its tombstone where it changes. more is
// false where there is no line.
func (p *planning) next(e *entry) (changes, more bool, err error) {
	line, err := p.lines.ReadBytes('\n')
	if err != nil {
		return false, false, ignore(err, io.EOF)
	}
	from := p.at
	p.at += int64(len(line))
	line = line[:len(line)-1]
	id, erasable := persist.Erasable(line)
	if erasable == nil || !p.of(id) {
		return false, true, nil
	}
	out := p.hash.erase(line, e, true, erasable)
	if bytes.Equal(bytes.TrimRight(out, " "), bytes.TrimRight(line, " ")) {
		return false, true, nil
	}
	p.changed++
	p.text.Write(append(strconv.AppendInt(nil, from, 10), ' '))
	p.text.Write(append(out, bytes.Repeat([]byte{' '}, len(line)-len(out))...)) // white space is in no digest
	return true, true, p.text.WriteByte('\n')
}

func ignore(err, not error) error {
	if errors.Is(err, not) {
		return nil
	}
	return err
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
