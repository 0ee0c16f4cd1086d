package spool

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// inParts writes text in several parts.
func inParts(text []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		for part := range slices.Chunk(text, 1000) {
			if _, err := w.Write(part); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestSpool(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "spool")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "message-left"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := New(dir)
	var all []*File
	for i := range 3 {
		want := bytes.Repeat([]byte{'a' + byte(i)}, 997_000)
		s, err := a.Keep(int64(len(want)), inParts(want))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
		for range 2 {
			if got, err := io.ReadAll(s.Reader()); err != nil || !bytes.Equal(got, want) || s.size != int64(len(want)) {
				t.Errorf("%d of %d bytes come back, %v, or other ones", len(got), len(want), err)
			}
		}
		onDisk, err := io.ReadAll(io.NewSectionReader(s.file, 0, s.size))
		if err != nil || len(onDisk) != len(want) || bytes.Contains(onDisk, bytes.Repeat([]byte{'a' + byte(i)}, 8)) {
			t.Errorf("%d bytes are on the disk, %v, or they can be read there", len(onDisk), err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || runtime.GOOS != "windows" && len(entries) != 0 {
		t.Errorf("%v can be found, %v", entries, err)
	}
	for _, s := range all {
		s.Close()
	}
	if a.bytes.Load() != 0 {
		t.Errorf("%d bytes count as being on the disk", a.bytes.Load())
	}
	(*File)(nil).Close()
}

func TestOutputsDoNotFillTheDisk(t *testing.T) {
	t.Parallel()
	a := New(t.TempDir())
	a.bytes.Store(maxSpooled - 10)
	if _, err := a.Keep(11, inParts(make([]byte, 11))); !errors.Is(err, errDiskFull) || a.bytes.Load() != maxSpooled-10 {
		t.Errorf("one byte too many was written: %v", err)
	}
	s, err := a.Keep(10, inParts(make([]byte, 10)))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

func TestADiskThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := New(filepath.Join(file, "spool")).Keep(1, inParts([]byte("x"))); err == nil {
		s.Close()
		t.Error("a spool is below a file")
	}
}
