package rawjson

import "unicode/utf8"

// NotUTF8 returns the offset of the first byte of text that is not part of a UTF-8 character, or -1
// where all of them are.
func NotUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}
