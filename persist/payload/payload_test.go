package payload_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
)

func open(t testing.TB, c payload.Config) *payload.Store {
	t.Helper()
	s, err := payload.Open(c, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func entry(id string) payload.Entry {
	return payload.Entry{ID: tool.ResultID("res_" + id), MediaType: "application/json", Tool: "mcp.a.b", Actor: "actor:stdio/ann", Created: time.Now()}
}

func put(t testing.TB, s *payload.Store, e payload.Entry, raw []byte) payload.Entry {
	t.Helper()
	e, err := s.Put(e, raw)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// read returns what is stored under the id, as another process would find it.
func read(s *payload.Store, id tool.ResultID) (raw []byte, err error) {
	e, err := s.Entry(id)
	if err != nil {
		return nil, err
	}
	err = s.Read(e, func(b []byte) error {
		raw = bytes.Clone(b)
		return nil
	})
	return raw, err
}

// payloads returns the files below dir that hold payloads.
func payloads(t testing.TB, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "bytes"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// noise is text that does not compress to nothing.
func noise(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]byte, n)
	for i := range out {
		out[i] = byte('a' + r.IntN(16))
	}
	return out
}

const secret = "a secret of some length"

func TestWhatIsPutIsRead(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"plain": "", "sealed": secret} {
		dir := t.TempDir()
		s := open(t, payload.Config{Dir: filepath.Join(dir, "results"), Key: key})
		// Around the sizes of a sealed chunk and of the window, too.
		for i, size := range []int{0, 1, 1000, 64<<10 - 1, 64 << 10, 64<<10 + 1, 1 << 20, 3_000_000} {
			raw := noise(size)
			e := put(t, s, entry(fmt.Sprintf("%s%d", name, i)), raw)
			if e.Size != int64(size) || e.Digest != tool.Digest(raw) {
				t.Errorf("%s: %+v", name, e)
			}
			other := open(t, payload.Config{Dir: filepath.Join(dir, "results"), Key: key})
			if got, err := read(other, e.ID); err != nil || !bytes.Equal(got, raw) {
				t.Errorf("%s: %d bytes became %d, %v", name, size, len(got), err)
			}
		}
		for _, file := range payloads(t, filepath.Join(dir, "results")) {
			text, err := os.ReadFile(file)
			if err != nil || key != "" && bytes.Contains(text, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
				t.Errorf("%s holds zstd in the clear, %v", file, err)
			}
		}
	}
}

func TestOnlyTheOwnerCanRead(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing there")
	}
	dir := filepath.Join(t.TempDir(), "results")
	put(t, open(t, payload.Config{Dir: dir}), entry("a"), noise(100))
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if files++; info.Mode().Perm() != want {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		return err
	})
	if err != nil || files < 6 {
		t.Errorf("%d files, %v", files, err)
	}
}

func TestEqualBytesAreWrittenOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, payload.Config{Dir: dir})
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() { _, _ = s.Put(entry(fmt.Sprintf("a%d", i)), noise(5000)) })
	}
	all.Wait()
	if files := payloads(t, dir); len(files) != 1 {
		t.Errorf("files %q", files)
	}
	for i := range 20 {
		if got, err := read(s, tool.ResultID(fmt.Sprintf("res_a%d", i))); err != nil || len(got) != 5000 {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
}

// TestCorruptedPayload changes each byte of a payload's file, and cuts it at each length: what is read is what was stored, or an
// error.
func TestCorruptedPayload(t *testing.T) {
	t.Parallel()
	raw := append(noise(300), bytes.Repeat([]byte("x"), 300)...)
	for name, key := range map[string]string{"plain": "", "sealed": secret} {
		dir := t.TempDir()
		s := open(t, payload.Config{Dir: dir, Key: key})
		id := put(t, s, entry("a"), raw).ID
		file := payloads(t, dir)[0]
		good, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		refused := 0
		check := func(what string, text []byte) {
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := read(s, id)
			corrupt := (*payload.CorruptError)(nil)
			if errors.As(err, &corrupt) {
				refused++
			} else if err != nil || !bytes.Equal(got, raw) {
				t.Errorf("%s, %s: %d bytes, %v", name, what, len(got), err)
			}
		}
		for i := range good {
			bad := bytes.Clone(good)
			bad[i] ^= 0x10
			check(fmt.Sprint("byte ", i), bad)
			check(fmt.Sprint("cut at ", i), good[:i])
		}
		if refused < 2*len(good)-8 { // a bit of zstd's header may say nothing
			t.Errorf("%s: of %d damages %d were refused", name, 2*len(good), refused)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if _, err := read(s, id); err == nil || !strings.Contains(err.Error(), "the file is gone") {
			t.Errorf("%s: %v", name, err)
		}
		// The same bytes again are written anew.
		put(t, s, entry("b"), raw)
		if got, err := read(s, id); err != nil || !bytes.Equal(got, raw) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A payload of other bytes in the place of the right one has a sound file, and another digest.
func TestExchangedPayload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, payload.Config{Dir: dir})
	a, b := put(t, s, entry("a"), []byte("one thing")), put(t, s, entry("b"), []byte("two thing"))
	at := func(e payload.Entry) string { return filepath.Join(dir, "bytes", e.Digest[:2], e.Digest) }
	if err := os.Rename(at(b), at(a)); err != nil {
		t.Fatal(err)
	}
	if got, err := read(s, a.ID); err == nil || !strings.Contains(err.Error(), "digest") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAnotherKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	id := put(t, open(t, payload.Config{Dir: dir, Key: secret}), entry("a"), noise(100)).ID
	for _, key := range []string{"", "another secret of some length"} {
		var corrupt *payload.CorruptError
		if got, err := read(open(t, payload.Config{Dir: dir, Key: key}), id); !errors.As(err, &corrupt) {
			t.Errorf("with key %q: %q, %v", key, got, err)
		}
	}
}

func TestUnknownIDs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, payload.Config{Dir: dir})
	put(t, s, entry("a"), noise(100))
	for _, id := range []tool.ResultID{"", "res_", "res_b", "a", "res_../index/res_a", "res_A", tool.ResultID("res_" + strings.Repeat("a", 70))} {
		if _, err := s.Entry(id); !errors.Is(err, payload.ErrUnknown) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := s.Put(payload.Entry{ID: "res_../x"}, nil); err == nil {
		t.Error("an id leads out of the directory")
	}
}

// What cannot be written is an error, and leaves nothing.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bytes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, payload.Config{Dir: dir})
	if _, err := s.Put(entry("a"), noise(100)); err == nil || !strings.Contains(err.Error(), "make it writable") {
		t.Errorf("got %v", err)
	}
	if _, err := s.Entry("res_a"); !errors.Is(err, payload.ErrUnknown) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkPut(b *testing.B) {
	s := open(b, payload.Config{Dir: b.TempDir()})
	raw := noise(3_000_000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		copy(raw, fmt.Sprint(i))
		put(b, s, entry(fmt.Sprint("a", i)), raw)
	}
}
