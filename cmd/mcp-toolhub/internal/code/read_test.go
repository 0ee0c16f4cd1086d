package code

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

func TestReadFileRanges(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{
		"root/three": "a\nb\nc\n", "root/open": "a\nb", "root/empty": "", "root/crlf": "a\r\n\r\nb\r", "root/250": numbered(250),
		"root/1500": numbered(1500), "root/newline": "\n", "root/bom": "\xef\xbb\xbfa\n", "root/latin": "caf\xe9 and more text here\n",
	})
	for _, tc := range []struct {
		args                    object
		text                    string
		start, end, total, next int // total -1: not known
		encoding                string
	}{
		{object{"path": "three"}, "a\nb\nc\n", 1, 3, 3, 0, "utf-8"},
		{object{"path": "three", "max_lines": 2}, "a\nb\n", 1, 2, -1, 3, "utf-8"},
		{object{"path": "three", "max_lines": 3}, "a\nb\nc\n", 1, 3, 3, 0, "utf-8"},
		{object{"path": "three", "start_line": 3}, "c\n", 3, 3, 3, 0, "utf-8"},
		{object{"path": "three", "start_line": 2, "max_lines": 1}, "b\n", 2, 2, -1, 3, "utf-8"},
		{object{"path": "open"}, "a\nb", 1, 2, 2, 0, "utf-8"},
		{object{"path": "open", "start_line": 2}, "b", 2, 2, 2, 0, "utf-8"},
		{object{"path": "empty"}, "", 1, 0, 0, 0, "utf-8"},
		{object{"path": "newline"}, "\n", 1, 1, 1, 0, "utf-8"},
		{object{"path": "crlf"}, "a\r\n\r\nb\r", 1, 3, 3, 0, "utf-8"},
		{object{"path": "bom"}, "a\n", 1, 1, 1, 0, "utf-8-bom"},
		{object{"path": "latin"}, "caf\uFFFD and more text here\n", 1, 1, 1, 0, "utf-8-lossy"},
		{object{"path": "250"}, numbered(200), 1, 200, -1, 201, "utf-8"},
		{object{"path": "250", "start_line": 201}, strings.TrimPrefix(numbered(250), numbered(200)), 201, 250, 250, 0, "utf-8"},
		{object{"path": "1500", "max_lines": 1000}, numbered(1000), 1, 1000, -1, 1001, "utf-8"},
		{object{"path": "./x/../three"}, "a\nb\nc\n", 1, 3, 3, 0, "utf-8"},
		{object{"path": filepath.Join(p.root, "three")}, "a\nb\nc\n", 1, 3, 3, 0, "utf-8"},
	} {
		r := p.mustCall(t, readFile, tc.args)
		c := decode[fileContent](t, r)
		total := -1
		if c.TotalLines != nil {
			total = *c.TotalLines
		}
		if r.text() != tc.text || *c.Text != tc.text {
			t.Errorf("%v: text %.60q, want %.60q", tc.args, r.text(), tc.text)
		}
		if c.StartLine != tc.start || *c.EndLine != tc.end || total != tc.total || c.NextStartLine != tc.next ||
			c.Truncated != (tc.next > 0) || c.Encoding != tc.encoding || c.Binary || r.IsError {
			t.Errorf("%v: %s", tc.args, r.raw)
		}
		if c.Truncated != strings.Contains(r.note(), "start_line=") {
			t.Errorf("%v: truncated %v, note %q", tc.args, c.Truncated, r.note())
		}
	}
	for _, start := range []int{4, 1000000} {
		_, f := p.call(t, readFile, object{"path": "three", "start_line": start})
		if f == nil || f.Class != tool.ClassInvalidArguments || f.Code != codeStartLine || !strings.Contains(f.Message, "3 lines") {
			t.Errorf("start_line %d: %v", start, f)
		}
	}
}

func TestReadFileCutsLongLines(t *testing.T) {
	t.Parallel()
	exact := strings.Repeat("x", 4096)
	wide := "x" + strings.Repeat("€", 2000) // byte 4096 lies within a character
	p := newProject(t, map[string]string{
		"root/lines": exact + "\r\n" + exact + "y\n" + "short\n" + wide + "\n",
		"root/huge":  strings.Repeat("z", 10<<20),
		"root/wall":  strings.Repeat(strings.Repeat("\x01", 4096)+"\n", 1000),
	})
	r := p.mustCall(t, readFile, object{"path": "lines"})
	c := decode[fileContent](t, r)
	if !reflect.DeepEqual(c.TruncatedLines, []int{2, 4}) || c.Truncated || !strings.Contains(r.note(), "[2 4]") {
		t.Errorf("truncated_lines %v, note %q", c.TruncatedLines, r.note())
	}
	if want := exact + "\r\n" + exact + "\nshort\nx" + strings.Repeat("€", 1365) + "\n"; r.text() != want {
		t.Errorf("text of %d bytes, want %d", len(r.text()), len(want))
	}
	c = decode[fileContent](t, p.mustCall(t, readFile, object{"path": "huge"}))
	if len(*c.Text) != 4096 || *c.TotalLines != 1 || c.SizeBytes != 10<<20 || len(c.TruncatedLines) != 1 {
		t.Errorf("10 MiB line: %d bytes of text, %+v", len(*c.Text), c.TruncatedLines)
	}
	r = p.mustCall(t, readFile, object{"path": "wall", "max_lines": 1000})
	c = decode[fileContent](t, r)
	if !c.Truncated || c.NextStartLine < 50 || len(r.raw) > 7<<20 {
		t.Errorf("a result of %d bytes, next line %d", len(r.raw), c.NextStartLine)
	}
}

func TestReadFileDescribesBinary(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{
		"root/a.png": "\x89PNG\r\n\x1a\n\x00\x00\x00", "root/utf16.txt": "\xff\xfeh\x00i\x00", "root/be": "\xfe\xff\x00h",
		"root/junk": strings.Repeat("\xe9\xe8", 50), "root/nul": "text\x00text",
	})
	for name, kind := range map[string]string{"a.png": "image/png", "utf16.txt": "text/plain; charset=utf-16le",
		"be": "text/plain; charset=utf-16be", "junk": "application/octet-stream", "nul": "application/octet-stream"} {
		r := p.mustCall(t, readFile, object{"path": name})
		c := decode[fileContent](t, r)
		if !r.IsError || !c.Binary || c.MIMEType != kind || c.ErrorCode != codeBinaryFile || c.Text != nil || c.SizeBytes == 0 {
			t.Errorf("%s: %s", name, r.raw)
		}
	}
}

func TestReadFileStreams(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"root/sparse": "", "root/tail": "first\n", "root/many": numbered(200_000)})
	for _, name := range []string{"sparse", "tail"} {
		if err := os.Truncate(filepath.Join(p.root, name), 1<<30); err != nil {
			t.Skipf("no sparse files here: %v", err)
		}
	}
	if c := decode[fileContent](t, p.mustCall(t, readFile, object{"path": "sparse"})); !c.Binary || c.SizeBytes != 1<<30 {
		t.Errorf("sparse: %+v", c)
	}
	c := decode[fileContent](t, p.mustCall(t, readFile, object{"path": "many", "start_line": 199_999, "max_lines": 1}))
	if *c.Text != "line 199999\n" || c.NextStartLine != 200_000 {
		t.Errorf("%+v", c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, f := p.callCtx(t, ctx, readFile, object{"path": "many"}, nil); f == nil || f.Class != tool.ClassCanceled {
		t.Errorf("canceled: %v", f)
	}
}

// FuzzReadFile holds a result against the file it speaks of: the ranges put together are the file.
func FuzzReadFile(f *testing.F) {
	for _, s := range []string{"", "a", "a\n", "a\r\nb\r", "\n\n\n", "\xef\xbb\xbfx", "é\nü", "a\xff\nb"} {
		f.Add([]byte(s), uint8(2))
	}
	p := newProject(f, nil)
	f.Fuzz(func(t *testing.T, content []byte, count uint8) {
		if count == 0 || strings.Count(string(content), "\n") > 500 {
			return
		}
		if err := os.WriteFile(filepath.Join(p.root, "f"), content, 0o600); err != nil {
			t.Fatal(err)
		}
		var whole strings.Builder
		cut, lossy := false, false
		for start := 1; ; {
			r := p.mustCall(t, readFile, object{"path": "f", "start_line": start, "max_lines": count})
			c := decode[fileContent](t, r)
			if c.Binary {
				return
			}
			whole.WriteString(*c.Text)
			cut, lossy = cut || len(c.TruncatedLines) > 0, lossy || c.Encoding == encodingLossy
			if !c.Truncated {
				break
			}
			if c.NextStartLine <= start || *c.EndLine != c.NextStartLine-1 {
				t.Fatalf("no progress: %s", r.raw)
			}
			start = c.NextStartLine
		}
		if want := strings.TrimPrefix(string(content), "\xef\xbb\xbf"); !cut && !lossy && whole.String() != want {
			t.Errorf("read %q, the file is %q", whole.String(), want)
		}
	})
}
