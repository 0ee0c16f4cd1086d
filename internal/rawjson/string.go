package rawjson

import (
	"encoding/binary"
	"math/bits"
)

// checkString checks the string whose inside begins at i, and returns the index after its closing quote.
func checkString(text []byte, i int) (next int, ok bool) {
	for len(text)-i >= 8 {
		found := special(binary.LittleEndian.Uint64(text[i:]))
		if found == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(found) / 8
		switch text[i] {
		case '"':
			return i + 1, true
		case '\\':
			if next, ok = checkEscape(text, i+1); !ok {
				return i, false
			}
			i = next
		default:
			return i, false // a control character
		}
	}
	for i < len(text) {
		switch c := text[i]; {
		case c == '"':
			return i + 1, true
		case c == '\\':
			if next, ok = checkEscape(text, i+1); !ok {
				return i, false
			}
			i = next
		case c < 0x20:
			return i, false
		default:
			i++
		}
	}
	return i, false
}

// checkEscape checks what follows a backslash.
func checkEscape(text []byte, i int) (next int, ok bool) {
	if i >= len(text) {
		return i, false
	}
	switch text[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1, true
	case 'u':
		if len(text)-i < 5 {
			return i, false
		}
		for _, c := range text[i+1 : i+5] {
			if !isHex(c) {
				return i, false
			}
		}
		return i + 5, true
	}
	return i, false
}

func isHex(c byte) bool { return c-'0' <= 9 || (c|0x20)-'a' <= 5 }

const (
	each = 0x0101010101010101
	high = 0x8080808080808080
)

// special has the high bit of each byte set that is a quote, a backslash or a control character. Bytes above the first
// such byte may be marked too, because subtraction borrows; the lowest mark is always right.
func special(x uint64) uint64 {
	quote, backslash := x^each*'"', x^each*'\\'
	return ((x-each*0x20)&^x | (quote-each)&^quote | (backslash-each)&^backslash) & high
}
