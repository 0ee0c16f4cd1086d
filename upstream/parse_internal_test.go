package upstream

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func readEvents(r io.Reader, limit int) (events []sseEvent, err error) {
	s := newSSEReader(r, limit, nil)
	for {
		ev, err := s.next()
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
		want []sseEvent
	}{
		"simple":          {"data: a\n\n", []sseEvent{{data: []byte("a")}}},
		"one blank taken": {"data:  a \n\n", []sseEvent{{data: []byte(" a ")}}},
		"several lines":   {"data: a\ndata:b\ndata\ndata: c\n\n", []sseEvent{{data: []byte("a\nb\n\nc")}}},
		"CRLF and CR":     {"data: a\r\n\r\ndata: b\r\rdata: c\n\n", []sseEvent{{data: []byte("a")}, {data: []byte("b")}, {data: []byte("c")}}},
		"all fields":      {": hi\nid: 7\nevent: x\nretry: 20\nother: 1\ndata: a\n\n", []sseEvent{{name: "x", id: "7", retry: 20 * time.Millisecond, data: []byte("a")}}},
		"id stays":        {"id: 7\ndata: a\n\ndata: b\n\n", []sseEvent{{id: "7", data: []byte("a")}, {id: "7", data: []byte("b")}}},
		"priming":         {"id: 7\nretry: 1\ndata:\n\n", []sseEvent{{id: "7", retry: time.Millisecond, data: []byte{}}}},
		"cut off":         {"data: a\n\ndata: b\n", []sseEvent{{data: []byte("a")}}},
		"byte order mark": {"\ufeffdata: a\n\n", []sseEvent{{data: []byte("a")}}},
		"comments alone":  {": a\n\n: b\n\nevent: x\n\n", nil},
		"bad retry":       {"retry: soon\ndata: a\n\n", []sseEvent{{data: []byte("a")}}},
		"null in id":      {"id: a\x00\ndata: a\n\n", []sseEvent{{data: []byte("a")}}},
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

func equalEvents(a, b []sseEvent) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].name != b[i].name || a[i].id != b[i].id || a[i].retry != b[i].retry || !bytes.Equal(a[i].data, b[i].data) {
			return false
		}
	}
	return true
}

func TestSSELimit(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"data: " + strings.Repeat("x", 100) + "\n\n", strings.Repeat("data: xxxx\n", 20) + "\n", strings.Repeat("x", 200)} {
		if _, err := readEvents(strings.NewReader("data: a\n\n"+in), 90); !errors.Is(err, errEventTooLarge) {
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
			s := newSSEReader(strings.NewReader("data: a"+end+end+event+"data: b"+end+end), 100, nil)
			got := ""
			for {
				ev, err := s.next()
				if errors.Is(err, errEventTooLarge) {
					err = s.skip()
				}
				if large := (*oversize)(nil); errors.As(err, &large) {
					e, _ := open(large.response)
					got += "<" + string(e.id) + ">"
					continue
				}
				if err != nil {
					break
				}
				got += string(ev.data)
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
			if len(ev.data) > 64 || bytes.ContainsRune(ev.data, '\r') {
				t.Fatalf("event %+v", ev)
			}
		}
	})
}

func TestLineReader(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200<<10)
	in := "a\n\n  \r\n b \r\n" + long + "\nc\n" + long + long + "\n" + "last"
	l := newLineReader(strings.NewReader(in), 300<<10, nil)
	var got []string
	for {
		line, err := l.next()
		if large := (*oversize)(nil); errors.As(err, &large) {
			got = append(got, "skipped")
			continue
		}
		if err != nil {
			break
		}
		got = append(got, string(line.text))
	}
	if want := []string{"a", "b", long, "c", "skipped", "last"}; strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("%d lines", len(got))
	}
	var large *oversize
	if _, err := newLineReader(strings.NewReader(long), 10, nil).next(); !errors.As(err, &large) {
		t.Errorf("error %v", err)
	}
}
