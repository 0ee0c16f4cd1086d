// Package spool keeps large results on the disk while slow clients take them.
package spool

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

// maxSpooled bounds what all files of a Dir have on the disk, in bytes.
const maxSpooled = 2 << 30

// errDiskFull says that the files have as much on the disk as they may.
var errDiskFull = errors.New("other large texts take up their part of the disk")

// names is the pattern of the names of files.
const names = "message-*"

// Dir is a directory for large texts. Make one with New. It is safe for concurrent use.
type Dir struct {
	path  string
	once  sync.Once
	bytes atomic.Int64 // on the disk
}

// New returns the directory at path, which is made with the first file.
func New(path string) *Dir { return &Dir{path: path} }

// prepare makes the directory. What killed hubs have left there goes: only Windows keeps the name
// of a file that is open, and does not remove it then.
func (d *Dir) prepare() {
	_ = os.MkdirAll(d.path, 0o700) // the error comes again when a file is made
	left, _ := filepath.Glob(filepath.Join(d.path, names))
	for _, file := range left {
		_ = os.Remove(file)
	}
}

// File is a text on the disk. It is encrypted with a key that is nowhere else, since not every text
// may be kept. It is not safe for concurrent use.
type File struct {
	dir   *Dir
	file  *os.File
	block cipher.Block
	size  int64
}

// Keep puts the text of size bytes that writeTo writes on the disk. The caller closes the file. The
// error says that the disk cannot be used.
func (d *Dir) Keep(size int64, writeTo func(io.Writer) error) (*File, error) {
	d.once.Do(d.prepare)
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(d.path, names) // with mode 0600
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" {
		_ = os.Remove(file.Name()) // it lives as long as it is open
	}
	s := &File{dir: d, file: file, block: block, size: size}
	if err = errDiskFull; d.bytes.Add(size) <= maxSpooled {
		err = writeTo(cipher.StreamWriter{S: s.stream(), W: file})
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *File) stream() cipher.Stream {
	return cipher.NewCTR(s.block, make([]byte, s.block.BlockSize())) // each key is used once
}

// Size returns how many bytes the text has.
func (s *File) Size() int64 { return s.size }

// Reader returns the text.
func (s *File) Reader() io.Reader {
	return cipher.StreamReader{S: s.stream(), R: io.NewSectionReader(s.file, 0, s.size)}
}

// Close removes the text from the disk. A nil *File has none.
func (s *File) Close() {
	if s == nil {
		return
	}
	_ = s.file.Close()
	if runtime.GOOS == "windows" {
		_ = os.Remove(s.file.Name())
	}
	s.dir.bytes.Add(-s.size)
}
