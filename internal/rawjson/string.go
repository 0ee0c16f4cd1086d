package rawjson

import (
	"encoding/binary"
	"math/bits"
)

// longString is how many bytes of a string are read in words of eight. Most strings are no longer; for those that are,
// blocks of 64 are faster, however many escapes they have.
const longString = 64

// checkString checks the string whose inside begins at i, and returns the index after its closing quote. Where it is no
// string, or does not end, next is an index from which on it would have to go on.
func checkString(text []byte, i int) (next int, ok bool) {
	for long := i + longString; len(text)-i >= 8; {
		if i >= long {
			i = skipBlocks(text, i)
			long = i + longString
			continue
		}
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
			if i+1 < len(text) && isShortEscape(text[i+1]) {
				i += 2
			} else if next, ok = checkEscape(text, i+1); ok {
				i = next
			} else {
				return i, false
			}
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

// skipWords is skipBlocks for every processor. Which bytes of a block need a look is found out without a branch, as a bit
// for each: where escapes come irregularly, a branch for each word costs the most time.
func skipWords(text []byte, i int) int {
	for len(text)-i >= 64 {
		b := (*[64]byte)(text[i:])
		found := marks(b[0:]) | marks(b[8:])<<8 | marks(b[16:])<<16 | marks(b[24:])<<24 |
			marks(b[32:])<<32 | marks(b[40:])<<40 | marks(b[48:])<<48 | marks(b[56:])<<56
		step := 64
		for found != 0 {
			at := bits.TrailingZeros64(found)
			if b[at] != '\\' || i+at+1 >= len(text) || !isShortEscape(text[i+at+1]) {
				return i + at
			}
			step = max(step, at+2)
			found = found >> (at + 2) << (at + 2)
		}
		i += step
	}
	return i
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

// marks has one bit set for each of the first eight bytes of b that is a quote, a backslash or a control character: the
// lowest for the first.
func marks(b []byte) uint64 {
	x := binary.LittleEndian.Uint64(b)
	low := x &^ high
	// A sum has its high bit set where the byte is none of those, and carries nothing into the next byte.
	ordinary := ((low ^ each*'"') + ^uint64(high)) & ((low ^ each*'\\') + ^uint64(high)) & (low + each*0x60)
	// The factor moves the high bit of byte k to bit 56+k.
	return (^(ordinary | x) & high) * 0x0002040810204081 >> 56
}

// isShortEscape reports whether c makes an escape together with the backslash before it.
func isShortEscape(c byte) bool {
	const low = 1<<'"' | 1<<'/'
	const high = 1<<('\\'-64) | 1<<('b'-64) | 1<<('f'-64) | 1<<('n'-64) | 1<<('r'-64) | 1<<('t'-64)
	if c < 64 {
		return uint64(low)>>c&1 == 1
	}
	return c < 128 && uint64(high)>>(c-64)&1 == 1
}
