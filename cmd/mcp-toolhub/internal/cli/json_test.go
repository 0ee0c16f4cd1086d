package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // unreachable: strings always encode
	}
	return string(b)
}

func mustDecode(t testing.TB, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("decode %.500s: %v", text, err)
	}
}

// member is where one member of an object stands in its text.
type member struct {
	key              string
	at, valueAt, end int // of its key's quote, of its value, after its value
}

// membersOf finds the members of an object with encoding/json alone: what is tested finds them by its own means.
func membersOf(t testing.TB, object string) []member {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(object))
	if _, err := d.Token(); err != nil {
		t.Fatalf("no object: %.200s: %v", object, err)
	}
	var all []member
	for at := d.InputOffset(); d.More(); at = d.InputOffset() {
		m := member{at: int(at) + strings.IndexByte(object[at:], '"')}
		key, err := d.Token()
		if err != nil {
			t.Fatalf("no object: %.200s: %v", object, err)
		}
		m.key, _ = key.(string)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatalf("no object: %.200s: %v", object, err)
		}
		m.end = int(d.InputOffset())
		m.valueAt = m.end - len(value)
		all = append(all, m)
	}
	return all
}

// memberOf is the value of an object's member, raw.
func memberOf(t testing.TB, object, key string) (string, bool) {
	t.Helper()
	value, found := "", false
	for _, m := range membersOf(t, object) {
		if m.key == key {
			value, found = object[m.valueAt:m.end], true
		}
	}
	return value, found
}

// without is the object's text without the members whose keys drop names: each goes with the comma before it, or where it
// is the first with the one after it.
func without(t testing.TB, object string, drop func(key string) bool) string {
	t.Helper()
	var out strings.Builder
	from, kept := 0, false
	all := membersOf(t, object)
	for i, m := range all {
		if !drop(m.key) {
			kept = true
			continue
		}
		cut, next := m.at, m.end
		switch {
		case kept:
			cut = strings.LastIndexByte(object[:m.at], ',')
		case i+1 < len(all):
			next = all[i+1].at
		}
		out.WriteString(object[from:max(cut, from)])
		from = next
	}
	out.WriteString(object[from:])
	return out.String()
}

// onOneLine is text as a line-based wire carries it: as it is, or without blanks between tokens if it has line breaks.
func onOneLine(t testing.TB, text string) string {
	t.Helper()
	if !strings.ContainsAny(text, "\r\n") {
		return text
	}
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		t.Fatalf("compact %.200s: %v", text, err)
	}
	return b.String()
}
