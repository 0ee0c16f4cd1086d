package rawjson

import "bytes"

// SkipSpace returns the index, from i on, of what is no white space.
func SkipSpace(text []byte, i int) int { return skipSpace(text, i) }

// SkipString returns the index after the string that begins at i, or len(text) where it does not end.
func SkipString(text []byte, i int) int { return skipString(text, i) }

// SkipValue returns the index after the value that begins at i; i itself where none begins there.
func SkipValue(text []byte, i int) int { return skipValue(text, i) }

// Same reports whether two valid texts differ in white space alone.
func Same(a, b []byte) bool {
	i, j := skipSpace(a, 0), skipSpace(b, 0)
	for i < len(a) && j < len(b) && a[i] == b[j] {
		x, y := i+1, j+1
		if a[i] == '"' {
			x, y = skipString(a, i), skipString(b, j)
		}
		if !bytes.Equal(a[i:x], b[j:y]) {
			return false
		}
		i, j = skipSpace(a, x), skipSpace(b, y)
	}
	return i == len(a) && j == len(b)
}
