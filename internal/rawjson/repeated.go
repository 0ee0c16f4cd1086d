package rawjson

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// Duplicate returns the name of a member that occurs twice in object itself, or ok false.
func Duplicate(object []byte) (name string, ok bool) { return repeated(object, bytes.Compare, 1) }

// Repeated returns the name of a member that occurs twice in one object, anywhere in text, which is
// valid JSON; or ok false. Names are the same where compare, which orders them, says 0.
func Repeated(text []byte, compare func(a, b []byte) int) (name string, ok bool) {
	return repeated(text, compare, MaxDepth)
}

// level is an object or array that is open.
type level struct {
	from  int    // where its keys begin; -1 of an array
	seen  uint64 // one bit for each key, and for a few others
	twice bool   // two keys may be the same
}

// repeated looks at the objects that are at most so deep in text.
func repeated(text []byte, compare func(a, b []byte) int, deepest int) (name string, ok bool) {
	var fewKeys [16][]byte
	var fewOpen [8]level
	keys := fewKeys[:0] // of all objects that are open, as they are written or decoded
	open := fewOpen[:0]
	isKey := false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			open, isKey = append(open, level{from: len(keys)}), true
		case '[':
			open, isKey = append(open, level{from: -1}), false
		case ']', '}':
			if len(open) == 0 {
				return "", false
			}
			if last := open[len(open)-1]; last.from >= 0 {
				if own := keys[last.from:]; last.twice && len(open) <= deepest {
					slices.SortFunc(own, compare)
					for n := 1; n < len(own); n++ {
						if compare(own[n-1], own[n]) == 0 {
							return string(own[n]), true
						}
					}
				}
				keys = keys[:last.from]
			}
			open, isKey = open[:len(open)-1], false
		case ',':
			isKey = len(open) > 0 && open[len(open)-1].from >= 0
		case '"':
			end := skipString(text, i)
			if isKey && end-i >= 2 {
				keys = append(keys, open[len(open)-1].take(text[i+1:end-1]))
			}
			isKey = false
			i = end - 1
		}
	}
	return "", false
}

// take notes a key, and returns it decoded. Of two keys that differ in their letter case alone both have the same bit.
func (l *level) take(key []byte) []byte {
	bit := uint64(1)
	if len(key) > 0 {
		bit = 1 << ((uint(len(key)) + 5*uint(key[0]|0x20) + 11*uint(key[len(key)-1]|0x20)) % 64)
	}
	l.twice = l.twice || l.seen&bit != 0
	l.seen |= bit
	for _, c := range key {
		if c == '\\' || c >= utf8.RuneSelf { // it may be the same as a key of another length
			l.twice = true
			if !plain(key) {
				return []byte(unquote(key))
			}
			break
		}
	}
	return key
}
