package schema

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// Bounds of arguments that are not left to the library.
const (
	maxCheckedDepth  = 64
	maxCheckedNumber = 300 // bytes; none with an exponent
)

// accepts reports whether a value, which is valid JSON, is known to satisfy the schema. It may hold depth levels more.
func (n *node) accepts(value []byte, depth int) (ok bool) {
	if depth == 0 {
		return false
	}
	if n == nil {
		free := newNode()
		n = &free
	}
	kind := nulls
	switch value[0] {
	case '{':
		kind, ok = objects, n.object(value, depth-1)
	case '[':
		kind, ok = arrays, n.array(value, depth-1)
	case '"':
		kind, ok = texts, n.text(value[1:len(value)-1])
	case 't', 'f':
		kind, ok = booleans, true
	case 'n':
		ok = true
	default:
		kind, ok = n.number(value)
	}
	return ok && n.kinds&kind != 0 && (n.values == nil || n.values[string(value)]) && n.fitsAny(value, depth)
}

// plain reports whether the inside of a string stands for itself: no escape, and no byte that decoders replace.
func plain(inside []byte) bool { return bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) }

// fitsAny checks a value against the schemas of which one has to hold.
func (n *node) fitsAny(value []byte, depth int) bool {
	for _, other := range n.any {
		if other.accepts(value, depth) {
			return true
		}
	}
	return len(n.any) == 0
}

func (n *node) text(inside []byte) bool {
	least, most := min(len(inside), 1), len(inside) // code points
	if (n.minLength > least || n.maxLength < most) && bytes.IndexByte(inside, '\\') < 0 {
		least = utf8.RuneCount(inside)
		most = least
	}
	return n.minLength <= least && most <= n.maxLength
}

func (n *node) number(number []byte) (kind kinds, ok bool) {
	if len(number) > maxCheckedNumber || bytes.IndexByte(number, 'e') >= 0 || bytes.IndexByte(number, 'E') >= 0 {
		return 0, false
	}
	kind = integers
	if bytes.IndexByte(number, '.') >= 0 {
		kind = fractions
	}
	if math.IsInf(n.floor.at, -1) && math.IsInf(n.ceiling.at, 1) {
		return kind, true
	}
	value, err := strconv.ParseFloat(string(number), 64)
	// Rounding keeps the order, so what is on one side of the float next to a bound is on that side of the bound.
	return kind, err == nil && (value > n.floor.at || n.floor.is(value, kind)) && (value < n.ceiling.at || n.ceiling.is(value, kind))
}

// is reports whether the bound, which is allowed, is the number that was read as value.
func (b bound) is(value float64, kind kinds) bool {
	return b.closed && value == b.at && kind == integers
}

// object checks the members. Where one occurs twice, the library looks at the last one alone: here both have to be valid. A key
// that has to be decoded first is left to the library.
func (n *node) object(value []byte, depth int) bool {
	missing, ok := n.required, true
	err := rawjson.Members(value, func(p rawjson.Member) bool {
		m, declared := n.members[string(p.Key)]
		if !declared {
			m.node = n.others
		}
		missing &^= m.bit
		ok = p.IsPlain() && m.node.accepts(p.Value, depth)
		return ok
	})
	return err == nil && ok && missing == 0
}

func (n *node) array(value []byte, depth int) bool {
	count, ok := 0, true
	err := rawjson.Elements(value, func(one []byte) bool {
		count++
		ok = n.items.accepts(one, depth)
		return ok
	})
	return err == nil && ok && n.least <= count && count <= n.most
}
