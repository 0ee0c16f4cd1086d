package queue

import (
	"fmt"
	"strings"
	"testing"
)

// word is an element whose key is what stands before "=".
type word string

func (w word) Size() int { return len(w) }
func (w word) Key() string {
	key, _, has := strings.Cut(string(w), "=")
	return map[bool]string{true: key}[has]
}

func TestQueue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		put     string
		most    Bounds
		want    string
		dropped int
	}{
		"in order":               {"a b c", Bounds{Items: 3}, "[a b c]", 0},
		"oldest dropped":         {"a b c d", Bounds{Items: 2}, "[c d]", 2},
		"bytes":                  {"aaa bb c", Bounds{Items: 9, Bytes: 3}, "[bb c]", 1},
		"too large by itself":    {"a bbbb", Bounds{Items: 9, Bytes: 3}, "[]", 2},
		"keys stay":              {"k=1 a l=1 b", Bounds{Items: 1}, "[k=1 l=1 b]", 1},
		"a key waits once":       {"k=1 k=2 a", Bounds{Items: 1}, "[k=1 a]", 0},
		"no bytes for keys":      {"k=long a", Bounds{Items: 1, Bytes: 1}, "[k=1ong a]", 0},
		"progress dropped first": {"a ~b c ~d e", Bounds{Items: 3}, "[a c e]", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := Queue[word]{DropFirst: func(w word) bool { return strings.HasPrefix(string(w), "~") }}
			dropped := 0
			for _, w := range strings.Fields(c.put) {
				dropped += q.Put(word(w), c.most)
			}
			want := strings.ReplaceAll(c.want, "1ong", "long")
			copied := q
			if got := fmt.Sprint(copied.All()); got != want || dropped != c.dropped {
				t.Errorf("%s, %d dropped, want %s, %d", got, dropped, want, c.dropped)
			}
			var got []word
			for v, ok := q.Next(); ok; v, ok = q.Next() {
				got = append(got, v)
			}
			if fmt.Sprint(got) != want || q.Len() != 0 || q.loose != 0 || q.size != 0 || len(q.keys) != 0 {
				t.Errorf("%s, and left %+v", got, q)
			}
		})
	}
}
