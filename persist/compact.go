package persist

// isSpecial reports whether b ends a run of plain bytes inside a JSON string.
func isSpecial(b byte) bool { return b < ' ' || b == '"' || b == '\\' }

// maxNesting is encoding/json's bound: deeper texts are refused.
const maxNesting = 10_000

// appendCompact adds text to dst without its insignificant white space and otherwise byte for byte, as json.Compact
// does. ok is false if text is not one JSON value: a broken text would break the line that it stands in.
func appendCompact(dst, text []byte) (out []byte, ok bool) {
	c := compactor{text: text, out: dst}
	c.space()
	if !c.value(0) {
		return dst, false
	}
	c.space()
	if c.at != len(text) {
		return dst, false
	}
	c.flush()
	return c.out, true
}

// compactor reads text and copies it in runs as long as possible.
type compactor struct {
	text  []byte
	at    int // next byte to read
	start int // beginning of what is read but not copied
	out   []byte
}

func (c *compactor) flush() { c.out = append(c.out, c.text[c.start:c.at]...) }

// space passes over white space and leaves it out.
func (c *compactor) space() {
	if c.at >= len(c.text) || c.text[c.at] > ' ' {
		return
	}
	c.flush()
	for c.at < len(c.text) && isSpace(c.text[c.at]) {
		c.at++
	}
	c.start = c.at
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\t' || b == '\r' }

// peek returns the next byte, or 0 at the end, which is no part of JSON outside strings.
func (c *compactor) peek() byte {
	if c.at < len(c.text) {
		return c.text[c.at]
	}
	return 0
}

// take passes over b if it is the next byte.
func (c *compactor) take(b byte) bool {
	if c.peek() != b {
		return false
	}
	c.at++
	return true
}

// value passes over one value inside nesting containers. It returns false if there is none.
func (c *compactor) value(nesting int) bool {
	switch b := c.peek(); {
	case b == '"':
		return c.string()
	case b == '{' || b == '[':
		return nesting < maxNesting && c.container(b+2, b == '{', nesting+1) // '}' and ']' come two after their openers
	case b == '-' || isDigit(b):
		return c.number()
	case b == 't':
		return c.word("true")
	case b == 'f':
		return c.word("false")
	case b == 'n':
		return c.word("null")
	}
	return false
}

// container passes over an object or array.
func (c *compactor) container(closer byte, keys bool, nesting int) bool {
	c.at++
	c.space()
	if c.take(closer) {
		return true
	}
	for {
		if keys {
			if !c.string() {
				return false
			}
			c.space()
			if !c.take(':') {
				return false
			}
			c.space()
		}
		if !c.value(nesting) {
			return false
		}
		c.space()
		if c.take(closer) {
			return true
		}
		if !c.take(',') {
			return false
		}
		c.space()
	}
}

func (c *compactor) string() bool {
	if !c.take('"') {
		return false
	}
	for {
		at := c.at
		for at < len(c.text) && !isSpecial(c.text[at]) {
			at++
		}
		c.at = at
		if c.take('"') {
			return true
		}
		if !c.take('\\') || !c.escape() {
			return false
		}
	}
}

// escape passes over what follows a backslash.
func (c *compactor) escape() bool {
	b := c.peek()
	c.at++
	switch b {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			if !isHex(c.peek()) {
				return false
			}
			c.at++
		}
		return true
	}
	return false
}

func (c *compactor) number() bool {
	c.take('-')
	if !c.take('0') && !c.digits() {
		return false
	}
	if c.take('.') && !c.digits() {
		return false
	}
	if c.take('e') || c.take('E') {
		if !c.take('+') {
			c.take('-')
		}
		return c.digits()
	}
	return true
}

// digits passes over one digit or more.
func (c *compactor) digits() bool {
	from := c.at
	for isDigit(c.peek()) {
		c.at++
	}
	return c.at > from
}

func (c *compactor) word(word string) bool {
	if end := c.at + len(word); end <= len(c.text) && string(c.text[c.at:end]) == word {
		c.at = end
		return true
	}
	return false
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

func isHex(b byte) bool { return isDigit(b) || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F' }
