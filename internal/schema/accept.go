package schema

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// Bounds of arguments that the checker looks at.
const (
	maxCheckedDepth  = 64
	maxCheckedNumber = 300 // bytes; none with an exponent
)

// accepts checks the value at i, and returns the index after it. ok is false where the value is not known to be valid, or no
// value. It may hold depth levels more.
func (n *node) accepts(text []byte, i, depth int) (next int, ok bool) {
	if i >= len(text) || depth == 0 {
		return i, false
	}
	if n == nil {
		free := newNode()
		n = &free
	}
	kind := nulls
	switch text[i] {
	case '{':
		kind = objects
		next, ok = n.parts(text, i, depth)
	case '[':
		kind = arrays
		next, ok = n.parts(text, i, depth)
	case '"':
		kind = texts
		next, ok = n.text(text, i)
	case 't', 'f', 'n':
		for _, word := range [...]string{"null", "true", "false"} {
			if next = i + len(word); next <= len(text) && string(text[i:next]) == word {
				ok = true
				break
			}
			kind = booleans
		}
	default:
		next, kind, ok = n.number(text, i)
	}
	return next, ok && n.kinds&kind != 0 && (n.values == nil || n.values[string(text[i:next])]) && n.fitsAny(text, i, depth)
}

// plain reports whether the inside of a string stands for itself: no escape, and no byte that decoders replace.
func plain(inside []byte) bool { return bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) }

// fitsAny checks the value at i against the schemas of which one has to hold.
func (n *node) fitsAny(text []byte, i, depth int) bool {
	for _, other := range n.any {
		if _, ok := other.accepts(text, i, depth); ok {
			return true
		}
	}
	return len(n.any) == 0
}

func (n *node) text(text []byte, i int) (next int, ok bool) {
	next, ok = rawjson.EndOfString(text, i)
	if !ok || n.minLength == 0 && n.maxLength == unbounded {
		return next, ok
	}
	inside := text[i+1 : next-1]
	least, most := 0, len(inside) // code points
	if len(inside) > 0 {
		least = 1
	}
	if (n.minLength > least || n.maxLength < most) && bytes.IndexByte(inside, '\\') < 0 {
		least = utf8.RuneCount(inside)
		most = least
	}
	return next, n.minLength <= least && most <= n.maxLength
}

func (n *node) number(text []byte, i int) (next int, kind kinds, ok bool) {
	next, ok = rawjson.EndOfNumber(text, i)
	number := text[i:next]
	if !ok || len(number) > maxCheckedNumber || bytes.IndexByte(number, 'e') >= 0 || bytes.IndexByte(number, 'E') >= 0 {
		return next, 0, false
	}
	kind = integers
	if bytes.IndexByte(number, '.') >= 0 {
		kind = fractions
	}
	if math.IsInf(n.floor.at, -1) && math.IsInf(n.ceiling.at, 1) {
		return next, kind, true
	}
	value, err := strconv.ParseFloat(string(number), 64)
	// Rounding keeps the order, so what is on one side of the float next to a bound is on that side of the bound.
	return next, kind, err == nil && (value > n.floor.at || n.floor.is(value, kind)) && (value < n.ceiling.at || n.ceiling.is(value, kind))
}

// is reports whether the bound, which is allowed, is the number that was read as value.
func (b bound) is(value float64, kind kinds) bool {
	return b.closed && value == b.at && kind == integers
}

// parts checks an object or array and what it holds. Where a member occurs twice, the library looks at the last one alone: here
// both have to be valid.
func (n *node) parts(text []byte, i, depth int) (next int, ok bool) {
	isObject, end := text[i] == '{', text[i]+('}'-'{')
	missing, part := n.required, member{node: n.items}
	count := 0
	for i = rawjson.SkipSpace(text, i+1); i < len(text); i = rawjson.SkipSpace(text, i+1) {
		if text[i] == end && count == 0 {
			break
		}
		if isObject {
			if part, i, ok = n.member(text, i); !ok {
				return i, false
			}
			missing &^= part.bit
		}
		if i, ok = part.node.accepts(text, i, depth-1); !ok {
			return i, false
		}
		count++
		if i = rawjson.SkipSpace(text, i); i < len(text) && text[i] == end {
			break
		}
		if i >= len(text) || text[i] != ',' {
			return i, false
		}
	}
	if isObject {
		return i + 1, i < len(text) && missing == 0
	}
	return i + 1, i < len(text) && n.least <= count && count <= n.most
}

// member returns what n says of the member at i, and where its value begins. ok is false for a key that has to be decoded first.
func (n *node) member(text []byte, i int) (m member, next int, ok bool) {
	if text[i] != '"' {
		return m, i, false
	}
	if next, ok = rawjson.EndOfString(text, i); !ok || !plain(text[i+1:next-1]) {
		return m, i, false
	}
	m, declared := n.members[string(text[i+1:next-1])]
	if !declared {
		m.node = n.others
	}
	if next = rawjson.SkipSpace(text, next); next >= len(text) || text[next] != ':' {
		return m, i, false
	}
	return m, rawjson.SkipSpace(text, next+1), true
}
