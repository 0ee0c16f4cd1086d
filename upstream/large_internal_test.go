package upstream

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// largeText is more than a message may have that takes no lease.
const largeText = 128 << 10

// inChunks reads at most so many bytes at once.
type inChunks struct {
	r    io.Reader
	size int
}

func (c inChunks) Read(b []byte) (int, error) { return c.r.Read(b[:min(len(b), c.size)]) }

// receivers read one message, as each kind of connection does.
func receivers() map[string]func(raw string, size int) (jsonrpc.Received, error) {
	return map[string]func(string, int) (jsonrpc.Received, error){
		"line": func(raw string, size int) (jsonrpc.Received, error) {
			l := jsonrpc.NewLineReader(inChunks{strings.NewReader(raw + "\n{}\n"), size}, func() int { return 64 << 20 }, nil)
			got, err := l.Next()
			if next, nextErr := l.Next(); err == nil && (nextErr != nil || string(next.Text) != "{}") {
				err = fmt.Errorf("the next line is %.100q, %v", next.Text, nextErr)
			}
			return got, err
		},
		"last line": func(raw string, size int) (jsonrpc.Received, error) {
			l := jsonrpc.NewLineReader(iotest.DataErrReader(inChunks{strings.NewReader(raw), size}), func() int { return 64 << 20 }, nil)
			return l.Next()
		},
		"event": func(raw string, size int) (jsonrpc.Received, error) {
			s := jsonrpc.NewEventReader(inChunks{strings.NewReader("\ufeff: hello\n\ndata: " + raw + "\r\n\r\ndata: {}\n\n"), size}, 64<<20, nil)
			ev, err := s.Next()
			if next, nextErr := s.Next(); err == nil && (nextErr != nil || string(next.Data) != "{}") {
				err = fmt.Errorf("the next event is %.100q, %v", next.Data, nextErr)
			}
			return ev.Received(), err
		},
		"body": func(raw string, size int) (jsonrpc.Received, error) {
			resp := &http.Response{ContentLength: int64(len(raw)), Body: io.NopCloser(inChunks{strings.NewReader(raw), size})}
			return jsonrpc.ReadBody(resp.Body, resp.ContentLength, 64<<20, nil)
		},
		"body of unknown length": func(raw string, size int) (jsonrpc.Received, error) {
			resp := &http.Response{ContentLength: -1, Body: io.NopCloser(inChunks{strings.NewReader(raw), size})}
			return jsonrpc.ReadBody(resp.Body, resp.ContentLength, 64<<20, nil)
		},
	}
}

// TestLargeResponses checks that the result of a large response is found, wherever it stands.
func TestLargeResponses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`x\"`, largeText)
	result := `{"content":[{"type":"text","text":"` + long + `"}]}`
	for name, raw := range map[string]string{
		"usual":            `{"jsonrpc":"2.0","id":1,"result":` + result + `}`,
		"with spaces":      ` { "jsonrpc" : "2.0" , "id" : 1 , "result":  ` + result + ` } `,
		"more behind":      `{"jsonrpc":"2.0","id":1,"result":` + result + `,"more":{}}`,
		"result first":     `{"result":` + result + `,"jsonrpc":"2.0","id":1}`,
		"nothing awaited":  `{"jsonrpc":"2.0","id":2,"result":` + result + `}`,
		"number":           `{"jsonrpc":"2.0","id":7,"result":` + result + `}`,
		"odd key before":   `{"a":"\"result\":","x\"result":0,"jsonrpc":"2.0","id":1,"result" :` + result + `}`,
		"small one first":  `{"result":{},"jsonrpc":"2.0","id":1,"result":` + result + `}`,
		"large one first":  `{"result":{"a":"` + long + `"},"jsonrpc":"2.0","id":1,"result":` + result + `}`,
		"key with escapes": `{"jsonrpc":"2.0","id":1,"r\u0065sult":` + result + `}`,
		"two of one length": `{"jsonrpc":"2.0","id":1,"result":` + strings.Replace(result, "text", "next", 1) +
			`,"r\u0065sult":` + result + `}`,
		"long key": `{"` + strings.Repeat("long", 100) + `":0,"jsonrpc":"2.0","id":1,"result":` + result + `}`,
	} {
		for how, receive := range receivers() {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				for _, size := range []int{29_973, 1 << 30} {
					got, err := receive(raw, size)
					if err != nil {
						t.Fatal(err)
					}
					if string(bytes.TrimSpace(got.Text)) != strings.TrimSpace(raw) {
						t.Fatalf("%d bytes are read, or other ones", len(got.Text))
					}
					e := jsonrpc.Read(got.Text)
					a := new(pendingRequest).answerOf(e)
					if e.Kind != jsonrpc.Response || string(a.result) != result {
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
	long := strings.Repeat("x", 3*largeText)
	for name, raw := range map[string]string{
		"ends within":       `{"jsonrpc":"2.0","id":1,"result":{"a":"` + long,
		"wrong escape":      `{"jsonrpc":"2.0","id":1,"result":{"a":"` + long + `\x"}}`,
		"control character": `{"jsonrpc":"2.0","id":1,"result":{"a":"` + long + "\x01" + `"}}`,
		"more after it":     `{"jsonrpc":"2.0","id":1,"result":{"a":"` + long + `"}}}`,
		"error":             `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"` + long + `"}}`,
		"notification":      `{"jsonrpc":"2.0","method":"a","params":{"a":"` + long + `"}}`,
		"batch":             `[{"jsonrpc":"2.0","id":1,"result":{"a":"` + long + `"}}]`,
		"odd space":         "\v" + `{"jsonrpc":"2.0","id":1,"result":{"a":"` + long + `"}}` + "\v",
		"too deep":          `{"jsonrpc":"2.0","id":1,"result":{"b":` + strings.Repeat("[", 2000) + `"` + long + `"` + strings.Repeat("]", 2000) + `}}`,
	} {
		for how, receive := range receivers() {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				got, err := receive(raw, 9_973)
				if err != nil {
					t.Fatal(err)
				}
				e := jsonrpc.Read(got.Text)
				if valid := rawjson.Valid(got.Text); e.Kind != jsonrpc.None && e.Valid != valid {
					t.Errorf("kind %v, valid %v, want %v", e.Kind, e.Valid, valid)
				}
				if string(bytes.TrimSpace(got.Text)) != strings.TrimSpace(raw) {
					t.Errorf("%d bytes are read, or other ones", len(got.Text))
				}
			})
		}
	}
}
