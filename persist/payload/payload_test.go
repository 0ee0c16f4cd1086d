package payload_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
)

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
	onEach(t, func(t *testing.T, at testbed) {
		for name, key := range map[string]string{"plain": "", "sealed": secret} {
			c := at.config()
			c.Key = key
			s, other := open(t, c), open(t, c)
			// Around the size of the window, too.
			for i, size := range []int{0, 1, 1000, 64<<10 - 1, 64 << 10, 64<<10 + 1, 1 << 20, 3_000_000} {
				raw := noise(size)
				copy(raw, name) // a payload that is there is not written again
				e := put(t, s, entry(fmt.Sprintf("%s%d", name, i)), raw)
				if e.Size != int64(size) || e.Digest != tool.Digest(raw) {
					t.Errorf("%s: %+v", name, e)
				}
				if got, err := read(other, e.ID); err != nil || !bytes.Equal(got, raw) {
					t.Errorf("%s: %d bytes became %d, %v", name, size, len(got), err)
				}
				if text := at.get(t, payloadOf(e)); key != "" && size > 1 && bytes.Contains(text, []byte{0x28, 0xb5, 0x2f, 0xfd}) || int64(len(text)) != e.Stored {
					t.Errorf("%s: zstd in the clear, or not %d bytes", name, e.Stored)
				}
			}
		}
	})
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
	if err != nil || files < 4 { // directories, the index and the payload; SQLite may have others
		t.Errorf("%d files, %v", files, err)
	}
}

// TestCorruptedPayload changes each byte of a payload's file, and cuts it at each length: what is read is what was stored, or an
// error.
func TestCorruptedPayload(t *testing.T) {
	onEach(t, func(t *testing.T, at testbed) {
		raw := append(noise(300), bytes.Repeat([]byte("x"), 300)...)
		step := 1
		if at.slow() {
			step = 40
		}
		for name, key := range map[string]string{"plain": "", "sealed": secret} {
			c := at.config()
			c.Key = key
			s := open(t, c)
			e := put(t, s, entry("a"+name), raw)
			file := payloadOf(e)
			good := at.get(t, file)
			tried, refused := 0, 0
			check := func(what string, text []byte) {
				at.set(t, file, text)
				got, err := read(s, e.ID)
				corrupt := (*payload.CorruptError)(nil)
				tried++
				if errors.As(err, &corrupt) {
					refused++
				} else if err != nil || !bytes.Equal(got, raw) {
					t.Errorf("%s, %s: %d bytes, %v", name, what, len(got), err)
				}
			}
			for i := 0; i < len(good); i += step {
				bad := bytes.Clone(good)
				bad[i] ^= 0x10
				check(fmt.Sprint("byte ", i), bad)
				check(fmt.Sprint("cut at ", i), good[:i])
			}
			if refused < tried-8 { // a bit of zstd's header may say nothing
				t.Errorf("%s: of %d damages %d were refused", name, tried, refused)
			}
			at.remove(t, file)
			if _, err := read(s, e.ID); err == nil || !strings.Contains(err.Error(), "the file is gone") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// A payload of other bytes in the place of the right one has a sound file, and another digest.
func TestExchangedPayload(t *testing.T) {
	onEach(t, func(t *testing.T, at testbed) {
		s := openAt(t, at)
		a, b := put(t, s, entry("a"), []byte("one thing")), put(t, s, entry("b"), []byte("two thing"))
		at.set(t, payloadOf(a), at.get(t, payloadOf(b)))
		if got, err := read(s, a.ID); err == nil || !strings.Contains(err.Error(), "digest") {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestAnotherKey(t *testing.T) {
	onEach(t, func(t *testing.T, at testbed) {
		c := at.config()
		c.Key = secret
		id := put(t, open(t, c), entry("a"), noise(100)).ID
		for _, key := range []string{"", "another secret of some length"} {
			c.Key = key
			var corrupt *payload.CorruptError
			if got, err := read(open(t, c), id); !errors.As(err, &corrupt) {
				t.Errorf("with key %q: %q, %v", key, got, err)
			}
		}
	})
}

func TestUnknownIDs(t *testing.T) {
	onEach(t, func(t *testing.T, at testbed) {
		s := openAt(t, at)
		put(t, s, entry("a"), noise(100))
		for _, id := range []tool.ResultID{"", "res_", "res_b", "a", "res_../index/res_a", "res_A", tool.ResultID("res_" + strings.Repeat("a", 70))} {
			if _, err := s.Entry(id); !errors.Is(err, payload.ErrUnknown) {
				t.Errorf("%q: %v", id, err)
			}
		}
		if _, err := s.Put(payload.Entry{ID: "res_../x"}, nil); err == nil {
			t.Error("an id leads elsewhere")
		}
	})
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
