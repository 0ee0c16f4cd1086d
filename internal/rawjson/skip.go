package rawjson

import "bytes"

// Same reports whether two valid texts differ in white space alone.
func Same(a, b []byte) bool {
	i, j := SkipSpace(a, 0), SkipSpace(b, 0)
	for i < len(a) && j < len(b) && a[i] == b[j] {
		x, y := i+1, j+1
		if a[i] == '"' {
			x, y = SkipString(a, i), SkipString(b, j)
		}
		if !bytes.Equal(a[i:x], b[j:y]) {
			return false
		}
		i, j = SkipSpace(a, x), SkipSpace(b, y)
	}
	return i == len(a) && j == len(b)
}
