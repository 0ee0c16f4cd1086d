package rawjson

import "unicode/utf8"

// NotUTF8 returns the offset of the first byte of text that is not part of a UTF-8 character, or -1 where all of them are.
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

// utf8Check looks for bytes that are not UTF-8 in a text that comes in pieces. The zero value is ready.
type utf8Check struct {
	at  int // how much of the text was looked at; a character that was cut off is looked at again
	bad bool
}

// add goes on with text, which begins with all that it was before.
func (u *utf8Check) add(text []byte) {
	end := len(text)
	for i := end - 1; i >= max(u.at, end-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				end = i
			}
			break
		}
	}
	u.bad = u.bad || !utf8.Valid(text[u.at:end])
	u.at = end
}

// finish is add of the whole text. It reports whether that is UTF-8. What was added before may have gone on behind its end: a
// reader of lines finds that late.
func (u *utf8Check) finish(text []byte) bool {
	if u.bad || u.at > len(text) {
		*u = utf8Check{}
	}
	u.bad = u.bad || !utf8.Valid(text[u.at:])
	u.at = len(text)
	return !u.bad
}
