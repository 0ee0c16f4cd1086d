package rawjson

import (
	"math/bits"

	"golang.org/x/sys/cpu"
)

// classes say which of 64 bytes are what; the lowest bit stands for the first byte.
type classes struct {
	quote, backslash, control uint64
	noEscape                  uint64 // makes no escape of two bytes with a backslash before it
}

// classify sets the classes of the n blocks of 64 bytes at text. n is at least 1, and out has room for as many. It needs
// AVX2.
//
//go:noescape
func classify(text *byte, out *classes, n int)

// skipBlocks returns an index from i on, where the inside of a string begins or goes on, before which that neither ends
// nor is wrong. It goes in blocks of 64 bytes, and stops before one that needs a closer look. The index may be amid the
// digits of an escape, all of which are right then.
func skipBlocks(text []byte, i int) int {
	if !cpu.X86.HasAVX2 {
		return skipWords(text, i)
	}
	return skipClassified(text, i)
}

// maxClassified is how many blocks are classified at once, of a string that goes on for long.
const maxClassified = 16

// skipClassified is skipBlocks with AVX2. It takes no branch for an escape: where those come is hard to foresee for a
// processor.
func skipClassified(text []byte, i int) int {
	var blocks [maxClassified]classes
	first := uint64(0) // 1 if the first byte of the block is escaped by the last one of the block before
	for many := 1; len(text)-i >= 64; many = min(2*many, maxClassified) {
		n := min((len(text)-i)/64, many)
		classify(&text[i], &blocks[0], n)
		for b := range blocks[:n] {
			c := &blocks[b]
			escaped := c.backslash<<1 | first
			if c.backslash&escaped != 0 { // backslashes in a row: every other one is escaped itself
				escaped = first
				for rest := c.backslash &^ first; rest != 0; {
					at := rest & -rest
					escaped |= at << 1
					rest &^= at | at<<1
				}
			}
			if c.quote&^escaped|c.control != 0 || c.noEscape&escaped != 0 && !areLong(text, i, c.noEscape&escaped) {
				return i - int(first)
			}
			first = c.backslash &^ escaped >> 63
			i += 64
		}
	}
	return i - int(first)
}

// areLong reports whether what is escaped at i and the set bits of escaped, the lowest for i itself, makes the longer
// escapes: \u with four digits.
func areLong(text []byte, i int, escaped uint64) bool {
	for ; escaped != 0; escaped &= escaped - 1 {
		at := i + bits.TrailingZeros64(escaped)
		if len(text)-at < 5 || text[at] != 'u' || !isHex(text[at+1]) || !isHex(text[at+2]) || !isHex(text[at+3]) || !isHex(text[at+4]) {
			return false
		}
	}
	return true
}
