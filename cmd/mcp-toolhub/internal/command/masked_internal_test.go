package command

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mcp-toolhub/mcp-toolhub/internal/spool"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestASecretIsReplacedWhereverReadsEnd has few characters make many secrets and parts of them, across the ends of reads.
func TestASecretIsReplacedWhereverReadsEnd(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	some := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte("ab["[random.IntN(3)])
		}
		return b.String()
	}
	for range 2000 {
		text, secret := some(random.IntN(60)), some(1+random.IntN(4))
		want := strings.ReplaceAll(text, secret, redacted)
		for _, from := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
			got, err := io.ReadAll(&masked{from: from, secret: []byte(secret)})
			if err != nil || string(got) != want {
				t.Fatalf("%q without %q is %q, %v, want %q", text, secret, got, err, want)
			}
		}
		got, _ := io.ReadAll(&masked{from: iotest.OneByteReader(strings.NewReader(text)), secret: []byte(secret), cut: true})
		rest := strings.TrimPrefix(want, string(got))
		if !strings.HasPrefix(secret, rest) || rest == secret || endsWithPart(string(got), secret) && rest == "" {
			t.Fatalf("%q, which is cut, without %q is %q", text, secret, got)
		}
	}
}

func endsWithPart(text, secret string) bool {
	for n := 1; n < len(secret); n++ {
		if strings.HasSuffix(text, secret[:n]) && !strings.HasSuffix(text, redacted) {
			return true
		}
	}
	return false
}

func TestTextIsToldFromOtherBytes(t *testing.T) {
	t.Parallel()
	for _, at := range []int{0, 1, 32<<10 - 3, 32<<10 - 2, 32<<10 - 1, 32 << 10, 64<<10 - 1} {
		for _, c := range []string{"", "x", "ä", "€", "😀", "\x00", "\xff", "ä"[:1], "😀"[:3], "\x80"} {
			for _, after := range []string{"", "more"} {
				text := strings.Repeat("x", at) + c + after
				if got, want := isText(strings.NewReader(text)), tool.IsText([]byte(text)); got != want {
					t.Errorf("%q after %d bytes: %v", c+after, at, got)
				}
			}
		}
	}
}

// TestWholeOutputs writes outputs of all sizes around the bounds to a collector, in pieces. The end of what is on the disk lies in the middle of
// a character, which stands in a secret.
func TestWholeOutputs(t *testing.T) {
	t.Parallel()
	const inMemory, onDisk, secret = 4096, 1 << 20, "s€cret-of-length"
	disk := spool.New(filepath.Join(t.TempDir(), "spool"))
	line := "a line with a " + secret + strings.Repeat("-", 64-1-14-len(secret)) + "\n"
	all := strings.Repeat(" ", 64-16) + strings.Repeat(line, onDisk/64+1000)
	replaced := strings.NewReplacer(secret, redacted)
	for i, size := range []int{0, 100, inMemory, inMemory + 1, 100_000, onDisk - 1, onDisk, onDisk + 1, onDisk + inMemory/2, onDisk + inMemory/2 + 10, len(all)} {
		c := newCollector(inMemory)
		c.disk, c.diskMax = disk, onDisk
		for rest, n := all[:size], 1+i*13_337; rest != ""; rest = rest[min(n, len(rest)):] {
			_, _ = c.Write([]byte(rest[:min(n, len(rest))]))
		}
		o := c.output()
		open, mediaType := o.Whole([]string{secret, "another"})
		raw, err := io.ReadAll(open())
		again, _ := io.ReadAll(open())
		if err != nil || !bytes.Equal(raw, again) {
			t.Errorf("%d bytes: %v, and again they are %d and not %d", size, err, len(again), len(raw))
		}
		got, want := string(raw), replaced.Replace(all[:size])
		if whole := size <= onDisk+inMemory/2; whole && (got != want || o.Kept() != int64(size)) {
			t.Errorf("%d bytes: %d come back of %d, or other ones; %d are kept", size, len(got), len(want), o.Kept())
		} else if !whole {
			begin, end, _ := strings.Cut(got, "\n[… ")
			_, end, found := strings.Cut(end, " bytes left out …]\n")
			if !found || begin != strings.TrimSuffix(replaced.Replace(all[:onDisk]), "s\xe2") || !strings.HasSuffix(want, end) || len(end) < inMemory/4 ||
				o.Kept() >= int64(size) || o.Kept() < onDisk+inMemory/2 || mediaType != "text/plain; charset=utf-8" {
				t.Errorf("%d bytes: %d and %d come back, %d are kept, as %s", size, len(begin), len(end), o.Kept(), mediaType)
			}
			if _, mediaType := o.Whole(nil); mediaType != "text/plain; charset=utf-8" {
				t.Errorf("%d bytes: a character is cut", size)
			}
		}
		if (mediaType == "text/plain; charset=utf-8") != tool.IsText(raw) {
			t.Errorf("%d bytes are %s", size, mediaType)
		}
		if (o.spool != nil) != (size > inMemory) {
			t.Errorf("%d bytes are on the disk, or not: %v", size, o.spool)
		}
		o.Close()
		o.Close()
	}
}

// TestWholeOutputsWhereTheDiskFails has no directory for spools: the beginning and the end are kept.
func TestWholeOutputsWhereTheDiskFails(t *testing.T) {
	t.Parallel()
	c := newCollector(1000)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.disk, c.diskMax = spool.New(filepath.Join(file, "spool")), 1<<20
	for i := range 1000 {
		fmt.Fprintln(c, i)
	}
	o := c.output()
	defer o.Close()
	open, _ := o.Whole(nil)
	if got, err := io.ReadAll(open()); err != nil || string(got) != o.Text(nil) || o.Kept() != 1000 || o.Bytes != 3890 {
		t.Errorf("%d bytes of %d are kept: %.100q, %v", o.Kept(), o.Bytes, got, err)
	}
}
