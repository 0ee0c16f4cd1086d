package evidence

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/seal"
	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// Suffix is that of a journal file's chain.
const Suffix = ".chain"

// Every is how often a hub that serves extends the chains: lines that are newer are in no chain yet.
const Every = 5 * time.Second

// Keeper extends the chains of a journal. Several may do so at the same time, in one process or in many.
type Keeper struct {
	dir, keyFile string
	key          ed25519.PrivateKey // nil until it is needed
	seen         map[string]extent
	kept         map[string]headRef // the last head of each chain, as the file beside the key has it
	problem      error              // of the last Extend that looked at the files
}

// extent is how far a file and its chain have come.
type extent struct {
	file, chain int64 // sizes
	head        head
	damage      error // why nothing more is taken into the chain
}

// NewKeeper returns a Keeper of the journal in dir. The key is made when it is needed for the first time.
func NewKeeper(dir, keyFile string) *Keeper {
	return &Keeper{dir: dir, keyFile: keyFile, seen: make(map[string]extent)}
}

// Key returns the key, which it makes at the first time.
func (k *Keeper) Key() (ed25519.PrivateKey, error) {
	if k.key == nil {
		seed, err := seal.LoadKey(k.keyFile)
		if err != nil {
			return nil, err
		}
		k.key = ed25519.NewKeyFromSeed(seed)
	}
	return k.key, nil
}

// Extend takes the lines into the chains that have come since the last Extend of anybody, and signs
// a head of each file that has some. It removes chains whose files are gone. No call waits for it.
// An error that wraps ErrDamaged is about some of the files: the others are extended.
func (k *Keeper) Extend() error {
	names, err := persist.Files(k.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !k.isBehind(names) {
		return k.problem
	}
	if err != nil {
		return err
	}
	key, err := k.Key()
	if err != nil {
		return err
	}
	unlock, err := statefile.Lock(filepath.Join(k.dir, "chain"))
	if err != nil {
		return err
	}
	defer unlock()
	if k.kept, err = keptHeads(k.keyFile, key); err != nil {
		return err
	}
	k.removeStray(names)
	all := k.carryOut()
	for _, name := range names {
		err := k.load(name, key)
		if err == nil {
			err = k.extend(name, key)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, fmt.Errorf("extend the chain of %q: %w", name, err))
		}
	}
	k.problem = errors.Join(all, k.keepHeads(key))
	return k.problem
}

// isBehind reports whether a file or a chain is another than the last time.
func (k *Keeper) isBehind(names []string) bool {
	plans, _ := filepath.Glob(filepath.Join(k.dir, "*"+erasingSuffix))
	behind := len(names) != len(k.seen) || len(plans) > 0
	for _, name := range names {
		e := k.seen[name]
		behind = behind || size(filepath.Join(k.dir, name)) != e.file ||
			size(filepath.Join(k.dir, name+Suffix)) != e.chain
	}
	return behind
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func (k *Keeper) removeStray(names []string) {
	there := make(map[string]bool)
	for _, name := range names {
		there[name] = true
	}
	chains, _ := filepath.Glob(filepath.Join(k.dir, "*"+Suffix))
	for _, path := range chains {
		if name := strings.TrimSuffix(filepath.Base(path), Suffix); !there[name] {
			_ = os.Remove(path) // or the next time
		}
	}
	for name := range k.seen {
		if !there[name] {
			delete(k.seen, name)
		}
	}
}

// load reads the last head of a chain, unless it is known. What follows it is of an Extend that was cut off.
func (k *Keeper) load(name string, key ed25519.PrivateKey) error {
	path := filepath.Join(k.dir, name+Suffix)
	e := k.seen[name]
	if n := size(path); n > 0 && n == e.chain && e.damage == nil {
		return nil
	}
	e = extent{head: head{File: name, Chain: chainStart(name)}}
	defer func() { k.seen[name] = e }()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	e.find(text, key.Public().(ed25519.PublicKey))
	if kept := k.kept[name]; e.head.Lines < kept.Lines || e.head.Lines == kept.Lines && kept.Lines > 0 &&
		e.head.Chain != kept.Chain {
		e.damage = ErrDamaged
	}
	if e.damage != nil {
		e = extent{file: size(filepath.Join(k.dir, name)), chain: size(path), damage: e.damage}
	}
	return nil
}

// find finds the last head in a chain.
func (e *extent) find(chain []byte, key ed25519.PublicKey) {
	for end := len(chain); end >= 0; {
		end = bytes.LastIndex(chain[:end], []byte(headPrefix))
		if end < 0 || end > 0 && chain[end-1] != '\n' {
			continue // in the middle of a line is none
		}
		line, _, whole := bytes.Cut(chain[end:], []byte{'\n'})
		var s signed
		var h head
		if !whole || json.Unmarshal(line, &s) != nil || json.Unmarshal(s.Head, &h) != nil || h.File != e.head.File {
			continue
		}
		if e.head, e.chain = h, int64(end+len(line)+1); !s.by(key) {
			e.damage = ErrDamaged
		}
		return
	}
}

// ErrDamaged is wrapped by errors of Extend that say that a file or its chain is not as it was
// signed. Extend leaves both as they are.
var ErrDamaged = errors.New("the file or its chain is missing, is shorter than what was signed, or has another " +
	"signature, so its lines are in no chain: " +
	"bring back what is missing. If that cannot be, export evidence, which names what is gone, stop the hub, and " +
	"move the file and its chain away")

// extend takes in what is new of a file.
func (k *Keeper) extend(name string, key ed25519.PrivateKey) error {
	file, err := os.Open(filepath.Join(k.dir, name))
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	e := k.seen[name]
	if err != nil || e.damage != nil || info.Size() == e.file && e.file > 0 {
		return errors.Join(err, e.damage)
	}
	e.file = info.Size()
	defer func() { k.seen[name] = e }()
	h := e.head
	if h.Bytes > 0 {
		var last [1]byte
		if _, err := file.ReadAt(last[:], h.Bytes-1); err != nil || last[0] != '\n' {
			e.damage = ErrDamaged
			return ErrDamaged
		}
	}
	chain, err := os.OpenFile(filepath.Join(k.dir, name+Suffix), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(io.NewOffsetWriter(chain, e.chain))
	err = errors.Join(chain.Truncate(e.chain), appendEntries(out, io.NewSectionReader(file, h.Bytes, e.file-h.Bytes),
		&h))
	if h.Lines == e.head.Lines || err != nil {
		return errors.Join(err, chain.Close())
	}
	h.At, h.Key = time.Now().UTC().Format(time.RFC3339Nano), key.Public().(ed25519.PublicKey)
	line, err := sign(key, h)
	if err == nil {
		_, err = out.Write(line)
	}
	err = errors.Join(err, out.Flush(), chain.Sync()) // before keepHeads
	if err == nil {
		e.head, e.chain = h, size(chain.Name())
	}
	return errors.Join(err, chain.Close())
}

// appendEntries writes an entry for each whole line, and moves h on.
func appendEntries(out io.Writer, lines io.Reader, h *head) error {
	e := entry{Salt: make([]byte, saltSize)}
	return persist.EachLine(lines, func(line []byte) error {
		_, _ = rand.Read(e.Salt)
		leaves := leavesOf(line)
		e.Digest, _ = e.digestOf(leaves)
		e.Of = nameOf(leaves)
		h.Lines, h.Bytes, h.Chain = h.Lines+1, h.Bytes+int64(len(line)+1), h.Chain.next(e.link())
		return writeLine(out, &e)
	})
}

// rewrite returns a chain with its entries as take leaves them. take gets each entry with its line,
// which is nil where there are no more.
func rewrite(chain []byte, lines *bufio.Reader, take func(e *entry, line []byte) error) ([]byte, error) {
	var out bytes.Buffer
	for proof := range bytes.Lines(chain) {
		var e entry
		if bytes.HasPrefix(proof, []byte(headPrefix)) || json.Unmarshal(proof, &e) != nil {
			out.Write(proof)
			continue
		}
		line, err := lines.ReadBytes('\n')
		switch {
		case err == io.EOF:
			line = nil
		case err != nil:
			return nil, err
		}
		if err := take(&e, line); err != nil {
			return nil, err
		}
		if err := writeLine(&out, &e); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

func writeLine(out io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		_, err = out.Write(append(text, '\n'))
	}
	return err
}

// sign returns the line with v and its signature.
func sign(key ed25519.PrivateKey, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(signed{text, ed25519.Sign(key, append([]byte(signedText), text...))})
	return append(line, '\n'), err
}

// HeadsSuffix is that of the file beside the key that keeps the last head of each chain. Only who
// has the key can write it: so nobody else removes a chain, or takes it back, and has the file
// signed as it is by then.
const HeadsSuffix = ".heads"

// maxKept bounds the heads that are kept. Those of files that are gone are kept, too: no such file
// comes back with another chain.
const maxKept = 1000

// keptHeads reads the heads that are kept beside the key, by file. There are none before the first
// Extend.
func keptHeads(keyFile string, key ed25519.PrivateKey) (map[string]headRef, error) {
	kept := make(map[string]headRef)
	text, err := os.ReadFile(keyFile + HeadsSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return kept, nil
	}
	var s signed
	if err != nil || json.Unmarshal(text, &s) != nil || !s.by(key.Public().(ed25519.PublicKey)) ||
		json.Unmarshal(s.Head, &kept) != nil {
		return nil, errors.Join(err, fmt.Errorf("%q: %w", keyFile+HeadsSuffix, ErrDamaged))
	}
	return kept, nil
}

// keepHeads writes the heads that have moved on. Chains are on the disk by then: after a loss of
// power none is shorter than its head.
func (k *Keeper) keepHeads(key ed25519.PrivateKey) error {
	moved := false
	for name, e := range k.seen {
		if e.damage == nil && e.head.Lines > k.kept[name].Lines {
			k.kept[name], moved = headRef{name, e.head.Lines, e.head.Chain}, true
		}
	}
	if !moved {
		return nil
	}
	for len(k.kept) > maxKept { // names begin with the time
		delete(k.kept, slices.Min(slices.Collect(maps.Keys(k.kept))))
	}
	text, err := sign(key, k.kept)
	if err == nil {
		err = statefile.Write(k.keyFile+HeadsSuffix, text)
	}
	return err
}
