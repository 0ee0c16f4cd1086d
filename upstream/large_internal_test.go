package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// inChunks reads at most so many bytes at once.
type inChunks struct {
	r    io.Reader
	size int
}

func (c inChunks) Read(b []byte) (int, error) { return c.r.Read(b[:min(len(b), c.size)]) }

// receivers read one message, as each kind of connection does.
func receivers() map[string]func(raw string, size int) (received, error) {
	return map[string]func(string, int) (received, error){
		"line": func(raw string, size int) (received, error) {
			l := newLineReader(inChunks{strings.NewReader(raw + "\n{}\n"), size}, 64<<20, nil)
			got, err := l.next()
			if next, nextErr := l.next(); err == nil && (nextErr != nil || string(next.text) != "{}") {
				err = fmt.Errorf("the next line is %.100q, %v", next.text, nextErr)
			}
			return got, err
		},
		"last line": func(raw string, size int) (received, error) {
			l := newLineReader(iotest.DataErrReader(inChunks{strings.NewReader(raw), size}), 64<<20, nil)
			return l.next()
		},
		"event": func(raw string, size int) (received, error) {
			s := newSSEReader(inChunks{strings.NewReader("\ufeff: hello\n\ndata: " + raw + "\r\n\r\ndata: {}\n\n"), size}, 64<<20, nil)
			ev, err := s.next()
			if next, nextErr := s.next(); err == nil && (nextErr != nil || string(next.data) != "{}") {
				err = fmt.Errorf("the next event is %.100q, %v", next.data, nextErr)
			}
			return ev.received(), err
		},
		"body": func(raw string, size int) (received, error) {
			resp := &http.Response{ContentLength: int64(len(raw)), Body: io.NopCloser(inChunks{strings.NewReader(raw), size})}
			return readBody(resp, 64<<20, nil)
		},
		"body of unknown length": func(raw string, size int) (received, error) {
			resp := &http.Response{ContentLength: -1, Body: io.NopCloser(inChunks{strings.NewReader(raw), size})}
			return readBody(resp, 64<<20, nil)
		},
	}
}

// TestLargeResponses checks that the result of a large response is found, wherever it stands.
func TestLargeResponses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`x\"`, minMemory)
	result := `{"content":[{"type":"text","text":"` + long + `"}]}`
	for name, raw := range map[string]string{
		"usual":            `{"jsonrpc":"2.0","id":"toolhub-1","result":` + result + `}`,
		"with spaces":      ` { "jsonrpc" : "2.0" , "id" : "toolhub-1" , "result":  ` + result + ` } `,
		"more behind":      `{"jsonrpc":"2.0","id":"toolhub-1","result":` + result + `,"more":{}}`,
		"result first":     `{"result":` + result + `,"jsonrpc":"2.0","id":"toolhub-1"}`,
		"nothing awaited":  `{"jsonrpc":"2.0","id":"toolhub-2","result":` + result + `}`,
		"number":           `{"jsonrpc":"2.0","id":7,"result":` + result + `}`,
		"odd key before":   `{"a":"\"result\":","x\"result":0,"jsonrpc":"2.0","id":"toolhub-1","result" :` + result + `}`,
		"small one first":  `{"result":{},"jsonrpc":"2.0","id":"toolhub-1","result":` + result + `}`,
		"large one first":  `{"result":{"a":"` + long + `"},"jsonrpc":"2.0","id":"toolhub-1","result":` + result + `}`,
		"key with escapes": `{"jsonrpc":"2.0","id":"toolhub-1","r\u0065sult":` + result + `}`,
		"two of one length": `{"jsonrpc":"2.0","id":"toolhub-1","result":` + strings.Replace(result, "text", "next", 1) +
			`,"r\u0065sult":` + result + `}`,
		"long key": `{"` + strings.Repeat("long", 100) + `":0,"jsonrpc":"2.0","id":"toolhub-1","result":` + result + `}`,
	} {
		for how, receive := range receivers() {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				for _, size := range []int{29_973, 1 << 30} {
					got, err := receive(raw, size)
					if err != nil {
						t.Fatal(err)
					}
					if string(bytes.TrimSpace(got.text)) != strings.TrimSpace(raw) {
						t.Fatalf("%d bytes are read, or other ones", len(got.text))
					}
					e, kind := open(got.text)
					a := answerOf(e).in(got.memory)
					if kind != kindResponse || string(a.result) != result || a.memory == nil {
						t.Fatalf("answer %.100s", a.result)
					}
					if text := a.object.Text(); text != nil && string(text) != result {
						t.Errorf("read %.100s", text)
					}
				}
			})
		}
	}
}

// TestLargeMessagesOfAnotherKind checks large messages that are no good response to anybody.
func TestLargeMessagesOfAnotherKind(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3*minMemory)
	for name, raw := range map[string]string{
		"ends within":       `{"jsonrpc":"2.0","id":"toolhub-1","result":{"a":"` + long,
		"wrong escape":      `{"jsonrpc":"2.0","id":"toolhub-1","result":{"a":"` + long + `\x"}}`,
		"control character": `{"jsonrpc":"2.0","id":"toolhub-1","result":{"a":"` + long + "\x01" + `"}}`,
		"more after it":     `{"jsonrpc":"2.0","id":"toolhub-1","result":{"a":"` + long + `"}}}`,
		"error":             `{"jsonrpc":"2.0","id":"toolhub-1","error":{"code":1,"message":"` + long + `"}}`,
		"notification":      `{"jsonrpc":"2.0","method":"a","params":{"a":"` + long + `"}}`,
		"batch":             `[{"jsonrpc":"2.0","id":"toolhub-1","result":{"a":"` + long + `"}}]`,
		"odd space":         "\v" + `{"jsonrpc":"2.0","id":"toolhub-1","result":{"a":"` + long + `"}}` + "\v",
		"too deep":          `{"jsonrpc":"2.0","id":"toolhub-1","result":{"b":` + strings.Repeat("[", 2000) + `"` + long + `"` + strings.Repeat("]", 2000) + `}}`,
	} {
		for how, receive := range receivers() {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				got, err := receive(raw, 9_973)
				if err != nil {
					t.Fatal(err)
				}
				e, kind := open(got.text)
				if valid := rawjson.Valid(got.text); kind != kindNone && e.valid != valid {
					t.Errorf("kind %v, valid %v, want %v", kind, e.valid, valid)
				}
				if string(bytes.TrimSpace(got.text)) != strings.TrimSpace(raw) {
					t.Errorf("%d bytes are read, or other ones", len(got.text))
				}
			})
		}
	}
}

// TestLargeLineOverLimit: a line that grows over the limit while it is read into its memory is dropped to its end, and it
// is known whom it was for.
func TestLargeLineOverLimit(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	for _, more := range []int{-1, 0, 1, 70_000, 3 << 20} {
		for _, size := range []int{5000, 1 << 30} {
			head, tail := `{"jsonrpc":"2.0","id":"toolhub-1","result":{"a":"`, `"}}`
			line := head + strings.Repeat("x", limit+more-len(head)-len(tail)-1) + tail + "\n"
			l := newLineReader(inChunks{strings.NewReader(line + "{\"next\":1}\n"), size}, limit, nil)
			got, err := l.next()
			large := (*oversize)(nil)
			if more <= 0 && (err != nil || len(got.text) != len(line)-1) {
				t.Errorf("%d bytes: %d are read, %v", len(line), len(got.text), err)
			}
			if more > 0 && (!errors.As(err, &large) || !bytes.Contains(large.response, []byte("toolhub-1"))) {
				t.Errorf("%d bytes: %v", len(line), err)
			}
			if next, err := l.next(); err != nil || string(next.text) != `{"next":1}` {
				t.Errorf("%d bytes: the next line is %.100q, %v", len(line), next.text, err)
			}
		}
	}
}

// FuzzLines compares lines that are read in chunks with the same ones in one piece.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\n\n b \r\n{}\nlast"), uint(3), uint(4))
	f.Add([]byte(`{"a":1}`+"\n"), uint(1), uint(200_000))
	f.Fuzz(func(t *testing.T, text []byte, size, fill uint) {
		// A long beginning takes the reader to where it reads into memory.
		text = append(bytes.Repeat([]byte("y"), int(fill%400_000)), text...)
		const limit = 300_000
		l := newLineReader(inChunks{bytes.NewReader(text), int(size%100_000) + 1}, limit, nil)
		for _, line := range bytes.SplitAfter(text, []byte("\n")) {
			want, over := bytes.TrimSpace(line), len(line) > limit
			if len(want) == 0 && !over {
				continue
			}
			got, err := l.next()
			if large := (*oversize)(nil); over != errors.As(err, &large) || !over && (err != nil || !bytes.Equal(got.text, want)) {
				t.Fatalf("line %.50q of %d bytes: %d bytes, %v", line, len(line), len(got.text), err)
			}
		}
		if _, err := l.next(); err != io.EOF {
			t.Fatalf("after the last line: %v", err)
		}
	})
}
