package jsonrpc

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func readEvents(r io.Reader, limit int) (events []Event, err error) {
	s := NewEventReader(r, limit, nil)
	for {
		ev, err := s.Next()
		if err != nil {
			return events, err
		}
		events = append(events, ev)
	}
}

func TestSSE(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   string
		want []Event
	}{
		"simple":          {"data: a\n\n", []Event{{Data: []byte("a")}}},
		"one blank taken": {"data:  a \n\n", []Event{{Data: []byte(" a ")}}},
		"several lines":   {"data: a\ndata:b\ndata\ndata: c\n\n", []Event{{Data: []byte("a\nb\n\nc")}}},
		"CRLF and CR":     {"data: a\r\n\r\ndata: b\r\rdata: c\n\n", []Event{{Data: []byte("a")}, {Data: []byte("b")}, {Data: []byte("c")}}},
		"all fields":      {": hi\nid: 7\nevent: x\nretry: 20\nother: 1\ndata: a\n\n", []Event{{Name: "x", ID: "7", Retry: 20 * time.Millisecond, Data: []byte("a")}}},
		"id stays":        {"id: 7\ndata: a\n\ndata: b\n\n", []Event{{ID: "7", Data: []byte("a")}, {ID: "7", Data: []byte("b")}}},
		"priming":         {"id: 7\nretry: 1\ndata:\n\n", []Event{{ID: "7", Retry: time.Millisecond, Data: []byte{}}}},
		"cut off":         {"data: a\n\ndata: b\n", []Event{{Data: []byte("a")}}},
		"no blank line":   {"event: x\ndata: {\"a\":\ndata: 1}\ndata: {}\r\ndata: {}", []Event{{Name: "x", Data: []byte("{\"a\":\n1}")}, {Data: []byte("{}")}, {Data: []byte("{}")}}},
		"half an object":  {"data: {\n\ndata: {\"a\":1", []Event{{Data: []byte("{")}}},
		"id after data":   {"data: {}\nid: 7\n\n", []Event{{Data: []byte("{}")}, {ID: "7"}}},
		"byte order mark": {"\ufeffdata: a\n\n", []Event{{Data: []byte("a")}}},
		"comments alone":  {": a\n\n: b\n\nevent: x\n\n", nil},
		"bad retry":       {"retry: soon\ndata: a\n\n", []Event{{Data: []byte("a")}}},
		"null in id":      {"id: a\x00\ndata: a\n\n", []Event{{Data: []byte("a")}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, r := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in)),
				iotest.DataErrReader(strings.NewReader(c.in))} {
				got, err := readEvents(r, 1<<20)
				if !errors.Is(err, io.EOF) || !equalEvents(got, c.want) {
					t.Errorf("events %+v, %v, want %+v", got, err, c.want)
				}
			}
		})
	}
}

func equalEvents(a, b []Event) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name || a[i].ID != b[i].ID || a[i].Retry != b[i].Retry || !bytes.Equal(a[i].Data, b[i].Data) {
			return false
		}
	}
	return true
}

func TestSSELimit(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"data: " + strings.Repeat("x", 100) + "\n\n", strings.Repeat("data: xxxx\n", 20) + "\n", strings.Repeat("x", 200)} {
		if _, err := readEvents(strings.NewReader("data: a\n\n"+in), 90); !errors.As(err, new(*TooLarge)) {
			t.Errorf("error %v", err)
		}
	}
}

// TestSSESkip: an event that is too large costs itself alone, and it is known which request it answers.
func TestSSESkip(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200<<10)
	for _, end := range []string{"\n", "\r\n", "\r"} {
		for _, event := range []string{
			`data: {"id":"toolhub-7","result":{"a":"` + long + `"}}` + end + end,
			"event: message" + end + `data:{"result":"` + long + `","id":"toolhub-7"}` + end + "id: 5" + end + end,
			`data: {"id":"toolhub-7",` + end + `data: "result":"` + long + `"}` + end + end,
		} {
			s := NewEventReader(strings.NewReader("data: a"+end+end+event+"data: b"+end+end), 100, nil)
			got := ""
			for {
				ev, err := s.Next()
				if large := (*TooLarge)(nil); errors.As(err, &large) {
					id, _ := large.About.Get("id")
					got += "<" + string(id) + ">"
					continue
				}
				if err != nil {
					break
				}
				got += string(ev.Data)
			}
			if got != `a<"toolhub-7">b` {
				t.Errorf("%.30q with ends %q: %s", event, end, got)
			}
		}
	}
}

// FuzzSSE compares the incremental reader with itself fed byte by byte, and checks its limit.
func FuzzSSE(f *testing.F) {
	f.Add([]byte("id: 1\r\ndata: a\r\n\r\ndata: b\rdata: c\n\n"))
	f.Add([]byte("\xef\xbb\xbf:x\n\nretry: 1\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		whole, err := readEvents(bytes.NewReader(data), 64)
		pieces, err2 := readEvents(iotest.OneByteReader(bytes.NewReader(data)), 64)
		if errors.Is(err, io.EOF) != errors.Is(err2, io.EOF) || !equalEvents(whole, pieces) {
			t.Fatalf("%+v %v\n%+v %v", whole, err, pieces, err2)
		}
		for _, ev := range whole {
			if len(ev.Data) > 64 || bytes.ContainsRune(ev.Data, '\r') {
				t.Fatalf("event %+v", ev)
			}
		}
	})
}

func TestLineReader(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200<<10)
	in := "a\n\n  \r\n b \r\n" + long + "\nc\n" + long + long + "\n" + "last"
	l := NewLineReader(strings.NewReader(in), func() int { return 300 << 10 }, nil)
	var got []string
	for {
		line, err := l.Next()
		if large := (*TooLarge)(nil); errors.As(err, &large) {
			got = append(got, "skipped")
			continue
		}
		if err != nil {
			break
		}
		got = append(got, string(line.Text))
	}
	if want := []string{"a", "b", long, "c", "skipped", "last"}; strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("%d lines", len(got))
	}
	var large *TooLarge
	if _, err := NewLineReader(strings.NewReader(long), func() int { return 10 }, nil).Next(); !errors.As(err, &large) {
		t.Errorf("error %v", err)
	}
}

// inChunks reads at most so many bytes at once.
type inChunks struct {
	r    io.Reader
	size int
}

func (c inChunks) Read(b []byte) (int, error) { return c.r.Read(b[:min(len(b), c.size)]) }

// TestLargeLineOverLimit: a line that grows over the limit while it is read into its memory is dropped to its end, and it
// is known whom it was for.
func TestLargeLineOverLimit(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	for _, more := range []int{-1, 0, 1, 70_000, 3 << 20} {
		for _, size := range []int{5000, 1 << 30} {
			head, tail := `{"jsonrpc":"2.0","id":"toolhub-1","result":{"a":"`, `"}}`
			line := head + strings.Repeat("x", limit+more-len(head)-len(tail)-1) + tail + "\n"
			l := NewLineReader(inChunks{strings.NewReader(line + "{\"next\":1}\n"), size}, func() int { return limit }, nil)
			got, err := l.Next()
			large := (*TooLarge)(nil)
			if more <= 0 && (err != nil || len(got.Text) != len(line)-1) {
				t.Errorf("%d bytes: %d are read, %v", len(line), len(got.Text), err)
			}
			if more > 0 && (!errors.As(err, &large) || !isAbout(large, "toolhub-1")) {
				t.Errorf("%d bytes: %v", len(line), err)
			}
			if next, err := l.Next(); err != nil || string(next.Text) != `{"next":1}` {
				t.Errorf("%d bytes: the next line is %.100q, %v", len(line), next.Text, err)
			}
		}
	}
}

func isAbout(large *TooLarge, id string) bool {
	raw, _ := large.About.Get("id")
	return string(raw) == `"`+id+`"`
}

// FuzzLines compares lines that are read in chunks with the same ones in one piece.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\n\n b \r\n{}\nlast"), uint(3), uint(4))
	f.Add([]byte(`{"a":1}`+"\n"), uint(1), uint(200_000))
	f.Fuzz(func(t *testing.T, text []byte, size, fill uint) {
		// A long beginning takes the reader to where it reads into memory.
		text = append(bytes.Repeat([]byte("y"), int(fill%400_000)), text...)
		const limit = 300_000
		l := NewLineReader(inChunks{bytes.NewReader(text), int(size%100_000) + 1}, func() int { return limit }, nil)
		for _, line := range bytes.SplitAfter(text, []byte("\n")) {
			want, over := bytes.TrimSpace(line), len(line) > limit
			if len(want) == 0 && !over {
				continue
			}
			got, err := l.Next()
			if large := (*TooLarge)(nil); over != errors.As(err, &large) || !over && (err != nil || !bytes.Equal(got.Text, want)) {
				t.Fatalf("line %.50q of %d bytes: %d bytes, %v", line, len(line), len(got.Text), err)
			}
		}
		if _, err := l.Next(); err != io.EOF {
			t.Fatalf("after the last line: %v", err)
		}
	})
}

// TestParseFindsTheMembersOfParams holds it for every way to write the key.
func TestParseFindsTheMembersOfParams(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"a"}}`:                           `"a"`,
		`{"jsonrpc":"2.0","id":1,"method":"m","p\u0061rams":{"name":"a"}}`:                      `"a"`,
		`{"result":{"name":"b"},"jsonrpc":"2.0","id":1,"method":"m","params":{"name":[ 1 ] } }`: `[ 1 ]`,
		`{"jsonrpc":"2.0","id":1,"method":"m"}`:                                                 ``,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":null}`:                                   ``,
	} {
		m := Parse([]byte(text))
		if got, _ := m.Object.Get("name"); m.Fault != nil || string(got) != want {
			t.Errorf("%s: name is %s, want %s (%v)", text, got, want, m.Fault)
		}
	}
}
