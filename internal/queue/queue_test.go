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
		offer   bool
		want    string
		refused int
	}{
		"in order":               {"a b c", Bounds{Items: 3}, false, "[a b c]", 0},
		"oldest dropped":         {"a b c d", Bounds{Items: 2}, false, "[c d]", 2},
		"bytes":                  {"aaa bb c", Bounds{Items: 9, Bytes: 3}, false, "[bb c]", 1},
		"too large by itself":    {"a bbbb", Bounds{Items: 9, Bytes: 3}, false, "[]", 2},
		"keys stay":              {"k=1 a l=1 b", Bounds{Items: 1}, false, "[k=1 l=1 b]", 1},
		"a key waits once":       {"k=1 k=2 a", Bounds{Items: 1}, false, "[k=1 a]", 0},
		"no bytes for keys":      {"k=long a", Bounds{Items: 1, Bytes: 1}, false, "[k=1ong a]", 0},
		"offered":                {"a b c", Bounds{Items: 2}, true, "[a b]", 1},
		"offered bytes":          {"aa bb c", Bounds{Items: 9, Bytes: 3}, true, "[aa c]", 1},
		"offered keys":           {"k=1 l=1 k=2 m=1 a", Bounds{Items: 2}, true, "[k=1 l=1 a]", 1},
		"progress dropped first": {"a ~b c ~d e", Bounds{Items: 3}, false, "[a c e]", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := Queue[word]{DropFirst: func(w word) bool { return strings.HasPrefix(string(w), "~") }}
			refused := 0
			for _, w := range strings.Fields(c.put) {
				if !c.offer {
					refused += q.Put(word(w), c.most)
				} else if !q.Offer(word(w), c.most) {
					refused++
				}
			}
			want := strings.ReplaceAll(c.want, "1ong", "long")
			copied := q
			if got := fmt.Sprint(copied.All()); got != want || refused != c.refused {
				t.Errorf("%s, %d refused, want %s, %d", got, refused, want, c.refused)
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
