package spool

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

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
		s, err := a.Create()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
		var want []byte
		for n := range 100 {
			part := bytes.Repeat([]byte{'a' + byte(i)}, 997*n)
			want = append(want, part...)
			if _, err := s.Write(part); err != nil {
				t.Fatal(err)
			}
		}
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
	s, err := a.Create()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a.bytes.Store(maxSpooled - 10)
	if _, err := s.Write(make([]byte, 11)); !errors.Is(err, errDiskFull) || s.size != 0 || a.bytes.Load() != maxSpooled-10 {
		t.Errorf("one byte too many was written: %v", err)
	}
	if _, err := s.Write(make([]byte, 10)); err != nil {
		t.Error(err)
	}
}

func TestADiskThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := New(filepath.Join(file, "spool")).Create(); err == nil {
		s.Close()
		t.Error("a spool is below a file")
	}
}
