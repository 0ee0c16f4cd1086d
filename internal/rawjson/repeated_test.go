package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// repeatedByTokens returns all names that Repeated may return, by the tokens of encoding/json.
func repeatedByTokens(text []byte) (names []string) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	type level struct {
		keys  map[string]bool // nil in an array
		value bool            // the next token is a member's value
	}
	var levels []level
	for {
		token, err := decoder.Token()
		if err != nil {
			return names
		}
		if closing := token == json.Delim('}') || token == json.Delim(']'); closing {
			levels = levels[:len(levels)-1]
			continue
		}
		if len(levels) > 0 {
			if top := &levels[len(levels)-1]; top.keys != nil && !top.value {
				key, _ := token.(string)
				if top.keys[key] {
					names = append(names, key)
				}
				top.keys[key], top.value = true, true
				continue
			} else if top.keys != nil {
				top.value = false
			}
		}
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{keys: make(map[string]bool)})
		case json.Delim('['):
			levels = append(levels, level{})
		}
	}
}

func manyKeys(n int, last string) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"k%d":{"a":[{}]}`, i))
	}
	return "{" + strings.Join(append(all, `"`+last+`":1`), ",") + "}"
}

func repeatedSeeds() []string {
	return []string{
		`{}`, `[]`, `1`, `{"a":1,"a":2}`, `{"a":{"a":1},"b":[{"a":1},{"a":1}]}`, `[{"a":1,"b":{},"a":2}]`, `{"a":[],"a":[]}`,
		`{"a":1,"\u0061":2}`, `{"\u0062":1,"x":[],"b":1}`, `{"\"":1,"\"":2}`, "{\"\xff\":1,\"\ufffd\":2}", `{"a":"b","b":"a","c":"a"}`,
		`{"a":["a","a"],"b":"a"}`, `{"\ud800":1,"\ufffd":1}`, `{"":1,"":2}`,
		manyKeys(40, "new"), manyKeys(40, "k3"), manyKeys(40, "k39"), manyKeys(24, "k0"), manyKeys(23, "k0"), `{"x":` + manyKeys(30, "k29") + `}`,
	}
}

func checkRepeated(t *testing.T, text string) {
	t.Helper()
	if !Valid([]byte(text)) {
		return
	}
	name, ok := Repeated([]byte(text), bytes.Compare)
	if names := repeatedByTokens([]byte(text)); ok != (len(names) > 0) || ok && !slices.Contains(names, name) {
		t.Errorf("Repeated(%q) = %q, %v; want one of %q", text, name, ok, names)
	}
}

func TestRepeated(t *testing.T) {
	for _, text := range repeatedSeeds() {
		checkRepeated(t, text)
	}
	for _, text := range []string{`{}"a"`, `"a":1,"a":2`, `{}}"a"`, `[]"a","a"`, `{"a`, `,"a"`} { // no JSON: whatever it says, it ends
		Repeated([]byte(text), bytes.Compare)
	}
}

func FuzzRepeated(f *testing.F) {
	for _, text := range repeatedSeeds() {
		f.Add(text)
	}
	f.Fuzz(checkRepeated)
}

func BenchmarkRepeated(b *testing.B) {
	text := []byte(`{"name":"create_issue","description":"Create an issue","inputSchema":{"type":"object","properties":{"owner":{"type":"string",` +
		`"description":"Repository owner"},"repo":{"type":"string"},"labels":{"type":"array","items":{"type":"string"}},"page":{"type":"integer",` +
		`"minimum":1},"perPage":{"type":"integer","minimum":1,"maximum":100}},"required":["owner","repo"],"additionalProperties":false}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := Repeated(text, bytes.Compare); ok {
			b.Fatal("none is")
		}
	}
}
