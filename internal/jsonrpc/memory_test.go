package jsonrpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
)

// accounts are those that a message can be gathered with: without bounds, on a disk, and where the disk cannot be used.
func accounts(t *testing.T) map[string]*budget.Account {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]*budget.Account{
		"no bounds": nil,
		"disk":      budget.New(0, t.TempDir()).Account("a"),
		"no disk":   budget.New(0, filepath.Join(file, "none")).Account("a"),
	}
}

func TestGathering(t *testing.T) {
	t.Parallel()
	for name, account := range accounts(t) {
		for _, size := range []int{0, 1, 100, minMemory - 1, minMemory, 700_000, budget.Small - 1, budget.Small, budget.Small + 1, 5_000_000} {
			want := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
			byParts := gathering{account: account, most: 8 << 20}
			for rest := want; len(rest) > 0; {
				n := min(len(rest), 60_001)
				byParts.append(rest[:n])
				rest = rest[n:]
			}
			if err := byParts.load(); err != nil {
				t.Fatalf("%s: %d bytes: %v", name, size, err)
			}
			all := map[string]Received{"by parts": byParts.received(byParts.bytes)}
			for _, stated := range []int{-1, size} {
				got, err := ReadBody(iotest.DataErrReader(bytes.NewReader(want)), int64(stated), 8<<20, account)
				if err != nil {
					t.Fatalf("%s: %d of %d bytes: %v", name, stated, size, err)
				}
				all[fmt.Sprint(stated)] = got
			}
			for how, got := range all {
				if !bytes.Equal(got.Text, want) {
					t.Errorf("%s: %d bytes came %s as %d, or other ones", name, size, how, len(got.Text))
				}
				if size > minMemory && (got.Memory == nil || &got.Memory.bytes[:1][0] != &got.Text[0]) {
					t.Errorf("%s: %d bytes came %s, and are not in their memory", name, size, how)
				}
				got.Memory.Free()
			}
		}
		for _, size := range []int64{-1, 100, 3 << 20} {
			broken := io.MultiReader(bytes.NewReader(make([]byte, 2<<20)), iotest.ErrReader(io.ErrUnexpectedEOF))
			if _, err := ReadBody(broken, size, 8<<20, account); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s: error %v", name, err)
			}
		}
		if _, err := ReadBody(bytes.NewReader(make([]byte, 2<<20)), -1, 2<<20-1, account); !errors.Is(err, ErrBodyTooLarge) {
			t.Errorf("%s: error %v", name, err)
		}
		if account == nil {
			continue
		}
		l, err := account.Take(account.Largest())
		if err != nil {
			t.Errorf("%s: something is held: %v", name, err)
		}
		l.Free()
	}
}

// TestMemoryThatNobodyFreesIsCollected forgets a message. Whoever waits for its room gets it from the garbage collector.
func TestMemoryThatNobodyFreesIsCollected(t *testing.T) {
	t.Parallel()
	b := budget.New(16<<20, "")
	a := b.Account("a")
	held, err := takeMemory(a, 9<<20)
	if err != nil {
		t.Fatal(err)
	}
	part := held.bytes[:1]
	had := make(chan error, 1)
	go func() {
		l, err := a.Take(9 << 20)
		l.Free()
		had <- err
	}()
	for range 3 {
		runtime.GC()
	}
	select {
	case <-had: // a part of it keeps all of it
		t.Error("memory that is still read was taken for free")
	default:
	}
	runtime.KeepAlive(held)
	runtime.KeepAlive(part)
	if err := <-had; err != nil {
		t.Errorf("memory that nobody reads is held: %v", err)
	}
}

// TestAMessageThatIsNotWholeHoldsUpNobody has a server stop within a large message. Others have all the memory.
func TestAMessageThatIsNotWholeHoldsUpNobody(t *testing.T) {
	t.Parallel()
	const most = 64 << 20
	for name, read := range map[string]func(io.Reader, *budget.Account) error{
		"line": func(r io.Reader, a *budget.Account) error {
			_, err := NewLineReader(r, func() int { return most }, a).Next()
			return err
		},
		"event": func(r io.Reader, a *budget.Account) error {
			_, err := NewEventReader(r, most, a).Next()
			return err
		},
		"body": func(r io.Reader, a *budget.Account) error {
			_, err := ReadBody(r, -1, most, a)
			return err
		},
		"body of known size": func(r io.Reader, a *budget.Account) error {
			_, err := ReadBody(r, 50<<20, most, a)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			b := budget.New(0, dir)
			from, to := io.Pipe()
			ended := make(chan error, 1)
			go func() { ended <- read(from, b.Account("stops")) }()
			for _, part := range []string{"data:", strings.Repeat("x", 3<<20), "y"} {
				if _, err := io.WriteString(to, part); err != nil { // it returns when all was read
					t.Fatal(err)
				}
			}
			other := b.Account("other")
			l, err := other.Take(other.Largest())
			if err != nil {
				t.Errorf("another server's message has no room: %v", err)
			}
			l.Free()
			_ = to.CloseWithError(io.ErrUnexpectedEOF)
			if err := <-ended; name != "line" && err == nil { // a last line without line break counts
				t.Error("half a message was taken for a whole one")
			}
		})
	}
}
