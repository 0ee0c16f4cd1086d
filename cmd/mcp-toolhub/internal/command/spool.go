package command

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
)

// maxSpooled bounds what the outputs of all commands have on the disk, in bytes.
const maxSpooled = 2 << 30

// errDiskFull says that outputs have as much on the disk as they may.
var errDiskFull = errors.New("the outputs of other commands take up their part of the disk")

// spoolNames is the pattern of the names of spools.
const spoolNames = "message-*"

// Spools is a directory for large outputs of commands that run. Make one with NewSpools. It is safe for concurrent use.
type Spools struct {
	path  string
	once  sync.Once
	bytes atomic.Int64 // on the disk
}

// NewSpools returns the spools of the directory dir, which is made with the first one; "" is the system's directory for temporary
// files.
func NewSpools(dir string) *Spools { return &Spools{path: dir} }

// prepare makes the directory. What killed hubs have left there goes: only Windows keeps the name of a file that is open, and
// does not remove it then.
func (d *Spools) prepare() {
	if d.path == "" {
		return
	}
	_ = os.MkdirAll(d.path, 0o700) // the error comes again when a file is made
	left, _ := filepath.Glob(filepath.Join(d.path, spoolNames))
	for _, file := range left {
		_ = os.Remove(file)
	}
}

// spool is an output on the disk. It is encrypted with a key that is nowhere else, since not every output may be kept. It is not safe
// for concurrent use.
type spool struct {
	dir    *Spools
	file   *os.File
	block  cipher.Block
	out    cipher.Stream
	sealed []byte // what is written, again and again
	size   int64
}

// open returns an empty spool, which its caller closes. The error says that the disk cannot be used.
func (d *Spools) open() (*spool, error) {
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
	return &spool{dir: d, file: file, block: block, out: newStream(block)}, nil
}

func newStream(block cipher.Block) cipher.Stream {
	return cipher.NewCTR(block, make([]byte, block.BlockSize())) // each key is used once
}

// Write implements io.Writer. With an error nothing of p was added, and nothing more can be.
func (s *spool) Write(p []byte) (int, error) {
	if s.dir.bytes.Add(int64(len(p))) > maxSpooled {
		s.dir.bytes.Add(-int64(len(p)))
		return 0, errDiskFull
	}
	s.sealed = append(s.sealed[:0], p...)
	s.out.XORKeyStream(s.sealed, s.sealed)
	if _, err := s.file.WriteAt(s.sealed, s.size); err != nil {
		s.dir.bytes.Add(-int64(len(p)))
		return 0, err
	}
	s.size += int64(len(p))
	return len(p), nil
}

// reader returns what was written, from its beginning.
func (s *spool) reader() io.Reader {
	return cipher.StreamReader{S: newStream(s.block), R: io.NewSectionReader(s.file, 0, s.size)}
}

// close removes the output from the disk. A nil *spool has none. It may be called twice.
func (s *spool) close() {
	if s == nil || s.file == nil {
		return
	}
	_ = s.file.Close()
	if runtime.GOOS == "windows" {
		_ = os.Remove(s.file.Name())
	}
	s.dir.bytes.Add(-s.size)
	s.file = nil
}
