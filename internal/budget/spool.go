package budget

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
)

// maxSpooled bounds what one account has on the disk, in bytes.
const maxSpooled = 2 << 30

// spoolNames is the pattern of the names of spools.
const spoolNames = "message-*"

// spoolDir is the directory of the spools.
type spoolDir struct {
	path string // "": the system's directory for temporary files
	once sync.Once
}

// prepare makes the directory. What killed hubs have left there goes: only Windows keeps the name of a file that is open, and
// does not remove it then.
func (d *spoolDir) prepare() {
	if d.path == "" {
		return
	}
	_ = os.MkdirAll(d.path, 0o700) // the error comes again when a file is made
	left, _ := filepath.Glob(filepath.Join(d.path, spoolNames))
	for _, file := range left {
		_ = os.Remove(file)
	}
}

// Spool is a message on the disk that is not in memory: one that grows. It is encrypted with a key that is nowhere else, since not
// every message may be kept. It is not safe for concurrent use.
type Spool struct {
	account *Account
	file    *os.File
	block   cipher.Block
	out     cipher.Stream
	sealed  []byte // what is written, again and again
	size    int64
}

// Spool returns an empty spool, which its caller closes. The error says that the disk cannot be used.
func (a *Account) Spool() (*Spool, error) {
	d := &a.budget.spools
	d.once.Do(d.prepare)
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(d.path, spoolNames) // with mode 0600
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" {
		_ = os.Remove(file.Name()) // it lives as long as it is open
	}
	return &Spool{account: a, file: file, block: block, out: newStream(block)}, nil
}

func newStream(block cipher.Block) cipher.Stream {
	return cipher.NewCTR(block, make([]byte, block.BlockSize())) // each key is used once
}

// Write implements io.Writer. With ErrBusy the account has too much on the disk; another error says that the disk cannot be used. Then
// nothing of p was added, and nothing more can be.
func (s *Spool) Write(p []byte) (int, error) {
	if !s.account.spool(int64(len(p))) {
		return 0, fmt.Errorf("%w: those of its server, on the disk", ErrBusy)
	}
	s.sealed = append(s.sealed[:0], p...)
	s.out.XORKeyStream(s.sealed, s.sealed)
	if _, err := s.file.WriteAt(s.sealed, s.size); err != nil {
		s.account.spool(-int64(len(p)))
		return 0, err
	}
	s.size += int64(len(p))
	return len(p), nil
}

// spool counts n more bytes on the disk, unless they are too many.
func (a *Account) spool(n int64) bool {
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	if n > 0 && a.spooled+n > maxSpooled {
		return false
	}
	a.spooled += n
	return true
}

// Size returns how many bytes were written.
func (s *Spool) Size() int64 { return s.size }

// Reader returns what was written, from its beginning.
func (s *Spool) Reader() io.Reader {
	return cipher.StreamReader{S: newStream(s.block), R: io.NewSectionReader(s.file, 0, s.size)}
}

// Close removes the message from the disk. A nil *Spool has none. It may be called twice.
func (s *Spool) Close() {
	if s == nil || s.file == nil {
		return
	}
	_ = s.file.Close()
	if runtime.GOOS == "windows" {
		_ = os.Remove(s.file.Name())
	}
	s.account.spool(-s.size)
	s.file = nil
}
