package seal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func box(t testing.TB, key []byte, purpose string) *Box {
	t.Helper()
	b, err := New(key, purpose)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSeal(t *testing.T) {
	t.Parallel()
	key := bytes.Repeat([]byte{7}, KeySize)
	b := box(t, key, "p")
	for _, plain := range []string{"", "x", strings.Repeat("long ", 10_000)} {
		text := b.Seal([]byte(plain))
		if text == b.Seal([]byte(plain)) {
			t.Error("two seals of one text are equal")
		}
		got, err := box(t, key, "p").Open(text)
		if err != nil || string(got) != plain {
			t.Errorf("opened %.20q, %v", got, err)
		}
		for name, other := range map[string]*Box{"purpose": box(t, key, "q"), "key": box(t, nil, "p")} {
			if _, err := other.Open(text); !errors.Is(err, errForged) {
				t.Errorf("another %s: %v", name, err)
			}
		}
	}
	text := b.Seal([]byte("plain"))
	for i := range text {
		changed := []byte(text)
		changed[i] ^= 1
		if got, err := b.Open(string(changed)); err == nil {
			t.Errorf("changed at %d it opens as %q", i, got)
		}
	}
	for _, text := range []string{"", "x", "=", text + "\n", text + "A", text[:len(text)-1], "\x00", "ä"} {
		if _, err := b.Open(text); !errors.Is(err, errForged) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := New([]byte("short"), "p"); err == nil {
		t.Error("a short key is taken")
	}
}

func TestLoadKey(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	first, err := LoadKey(file)
	if err != nil || len(first) != KeySize || bytes.Equal(first, make([]byte, KeySize)) {
		t.Fatalf("key %x, %v", first, err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	again, err := LoadKey(file)
	if err != nil || !bytes.Equal(first, again) {
		t.Errorf("key %x, then %x, %v", first, again, err)
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(file, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKey(file); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("a broken key: %v", err)
	}
	if _, err := LoadKey(filepath.Join(file, "x")); err == nil {
		t.Error("no directory, no error")
	}
}

// Processes that make a key at the same time get the same one. A file that a killed process left empty counts as none.
func TestLoadKeyAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 20 {
		file := filepath.Join(t.TempDir(), "key")
		if round%2 == 1 {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var keys [8][]byte
		var all sync.WaitGroup
		for i := range keys {
			all.Go(func() {
				key, err := LoadKey(file)
				if err != nil {
					t.Error(err)
				}
				keys[i] = key
			})
		}
		all.Wait()
		for _, key := range keys {
			if len(key) != KeySize || !bytes.Equal(key, keys[0]) {
				t.Errorf("keys %x and %x", keys[0], key)
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	b := box(f, nil, "p")
	f.Add("")
	f.Add(b.Seal([]byte("x"))[1:])
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := b.Open(text); err == nil {
			t.Errorf("%q opens as %q", text, got)
		}
	})
}
