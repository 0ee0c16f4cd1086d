package secret

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"
)

const (
	before     = 60      // bytes before a keyword that its rule may need: a name
	after      = 400     // bytes behind it
	namedAfter = 400     // bytes behind a name: a sign and a value, and maybe further names
	namedMost  = 220     // bytes of one sign and value
	maxName    = 40      // bytes of a name before and behind the word in it that matters
	maxValue   = 2000    // bytes of what stands behind a well-known name
	longest    = 1 << 16 // bytes in which a rule looks for one secret
	shortest   = 8       // characters of the shortest secret that a rule finds
	encodedMin = 24      // characters of base64 that are looked into
)

// ownWords are in what named finds: in names. One of them is in each name of a secret.
var ownWords = []string{
	"pass", "pwd", "secret", "token", "key", "auth", "cred", "authorization", "cookie", "connection", "otp", "mfa",
	"pin", "cvv", "cvc",
	"session", "sig", "bearer", "jwt", "dsn", "hmac", "sid", "assertion", "pat",
}

// keywordIndex finds the keywords of rules in a text, in one pass and in any case.
type keywordIndex struct {
	starts [1 << 15]bool // by the first three bytes of keywords
	by     map[uint16][]keyword
}

type keyword struct {
	text  string
	own   bool // it is one of ownWords
	rules []int
}

func newKeywordIndex(rules []rule) (x keywordIndex) {
	all := make(map[string][]int)
	for _, w := range ownWords {
		all[w] = nil
	}
	for i, r := range rules {
		for _, k := range r.keywords {
			if len(k) > 2 {
				all[k] = append(all[k], i)
				continue
			}
			for _, c := range "abcdefghijklmnopqrstuvwxyz0123456789_~.-" {
				all[k+string(c)] = append(all[k+string(c)], i)
			}
		}
	}
	x.by = make(map[uint16][]keyword)
	for text, rules := range all {
		n := start(text[0], text[1], text[2])
		x.by[n] = append(x.by[n], keyword{text, slices.Contains(ownWords, text), rules})
		x.starts[n] = true
	}
	return x
}

// start is a number for three bytes: the same for small and capital letters.
func start(a, b, c byte) uint16 { return uint16(a&31)<<10 | uint16(b&31)<<5 | uint16(c&31) }

// scan finds the secrets of a text that are not encoded.
func scan(text string) (found []span) {
	set := loaded()
	var looked map[int]int // rule to the end of what it has looked at
	for i := 0; i+2 < len(text); i++ {
		n := start(text[i], text[i+1], text[i+2])
		if !set.index.starts[n] {
			continue
		}
		for _, k := range set.index.by[n] {
			if !strings.EqualFold(text[i:min(len(text), i+len(k.text))], k.text) {
				continue
			}
			if k.own {
				found = named(text, i, k.text, found)
			}
			for _, n := range k.rules {
				r := &set.rules[n]
				if i < looked[n] || !r.mayMatch(text, i, len(k.text)) {
					continue
				}
				if looked == nil {
					looked = make(map[int]int)
				}
				found, looked[n] = r.around(text, i, &set.none, found)
			}
		}
	}
	return found
}

// around looks at the text around a keyword at i, and returns the end of what it has looked at.
func (r *rule) around(text string, i int, none *allowlist, found []span) ([]span, int) {
	start := max(0, i-before)
	if r.named {
		end := min(len(text), i+namedAfter)
		return r.find(text[start:end], start, none, found), i + namedAfter - namedMost
	}
	for size := after; ; size *= 8 {
		end := min(len(text), i+size)
		if end < len(text) && size < longest {
			if m := r.regex().FindStringIndex(text[start:end]); m == nil && r.long || m != nil && m[1] == end-start {
				continue // what it finds may go on
			}
		}
		return r.find(text[start:end], start, none, found), end
	}
}

// mayMatch is a quick look whether the rule can find anything by a keyword of n bytes at i.
func (r *rule) mayMatch(text string, i, n int) bool {
	if r.long {
		return true
	}
	rest := text[i:min(len(text), i+n+after)]
	if !r.named {
		return hasRun(rest[:min(len(rest), n+64)])
	}
	over := false // the name: line breaks and quotes may follow, and then a sign
	for p := n; p < min(len(rest), n+maxName); p++ {
		switch c := rest[p]; {
		case c == '\\': // of an escape in JSON
			over, p = true, p+1
		case strings.IndexByte("\r\n\f'\"", c) >= 0:
			over = true
		case c != ' ' && c != '\t' && (over || !isName(c)):
			return strings.IndexByte("=>|:?,", c) >= 0 && beginsValue(rest[p+1:])
		}
	}
	return false
}

// beginsValue reports whether text, which stands behind a name and a sign, may begin with a value
// that a rule finds by its name.
func beginsValue(text string) bool {
	text = strings.TrimLeft(text, "`'\" \t\r\n=>:|")
	end := 0
	for end < len(text) && (isName(text[end]) || strings.IndexByte("=+/%:", text[end]) >= 0) {
		end++
	}
	return (end == len(text) || strings.IndexByte("`'\" \t\r\n\f;\\", text[end]) >= 0) &&
		hasRun(text[:min(len(text), 2*shortest)])
}

// hasRun reports whether text has a run of characters of tokens, a long one or one with a digit.
func hasRun(text string) bool {
	run, digit := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			digit = true
			run++
		case isBase64(c) || c == '.' || c == '~' || c == '=':
			run++
		default:
			run, digit = 0, false
		}
		if run >= shortest && digit || run >= 3*shortest {
			return true
		}
	}
	return false
}

// base64Bytes are the characters of base64, in both its alphabets.
var base64Bytes = func() (in [256]bool) {
	for _, c := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/-_" {
		in[c] = true
	}
	return in
}()

func isBase64(c byte) bool { return base64Bytes[c] }

// asText is raw as a text, without a copy: for who keeps no part of it.
func asText(raw []byte) string { return unsafe.String(unsafe.SliceData(raw), len(raw)) }

// suspicious reports whether there may be a secret in text, which may be JSON as it is written. It
// allocates nothing, and is right whenever it says no.
func suspicious(text string) bool {
	set := loaded()
	other, n := -1, uint16(0) // the latest byte that is not one of base64; start of the latest three
	address := false          // an address may have begun in this word
	for last := range len(text) {
		c := text[last]
		if c == '/' && last > 0 && strings.IndexByte(`/:\`, text[last-1]) >= 0 {
			address = true
		}
		if !base64Bytes[c] {
			other = last
			address = address && !ends(c)
			if c == '@' && address || c == '\\' && last+2 < len(text) && text[last+1] == 'u' ||
				c == '%' && last+2 < len(text) && isHex(text[last+1]) && isHex(text[last+2]) {
				return true
			}
		} else if last-other == encodedMin {
			if begins := text[other+1 : last+1]; isEncoded(base64.RawStdEncoding, begins) ||
				isEncoded(base64.RawURLEncoding, begins) {
				return true
			}
		}
		n = n<<5&(1<<15-1) | uint16(c&31)
		i := last - 2
		if i < 0 || !set.index.starts[n] {
			continue
		}
		for _, k := range set.index.by[n] {
			if strings.EqualFold(text[i:min(len(text), i+len(k.text))], k.text) && set.may(text, i, &k) {
				return true
			}
		}
	}
	return false
}

// may is a quick look whether the keyword k at i in text leads to anything. text may be JSON as it
// is written, with escapes.
func (set *ruleSet) may(text string, i int, k *keyword) bool {
	end := i + len(k.text)
	if k.own {
		// all of a name that is looked at for itself
		if k.text == "bearer" || k.text == "authorization" || k.text == "cookie" || i < 3 {
			return true
		}
		from, p := nameAround(text, i, end)
		name := text[from:p]
		always, ifRandom := readName(name)
		for p < len(text) && strings.IndexByte("\\\"'` \t[]", text[p]) >= 0 {
			p++
		}
		if (p == len(text) || text[p-1] == '"' || text[p] == '=' || text[p] == ':' &&
			!strings.HasPrefix(text[p:], "://") ||
			strings.Contains(text[max(0, i-maxName):i], "--")) &&
			// or behind \n
			(always || ifRandom || from > 0 && text[from-1] == '\\' && Parameter(name[1:])) {
			return true
		}
	}
	for _, n := range k.rules {
		if set.rules[n].mayMatch(text, i, len(k.text)) {
			return true
		}
	}
	return false
}

func isHex(c byte) bool { return c-'0' <= 9 || (c|0x20)-'a' <= 5 }

// encoded finds words of text that have secrets in them once they are decoded.
func (m *Masker) encoded(text string) (found []span) {
	for i := 0; i < len(text); {
		if !isBase64(text[i]) && text[i] != '%' {
			i++
			continue
		}
		start, percent := i, false
		for i < len(text) && (isBase64(text[i]) || text[i] == '=' || text[i] == '%' || text[i] == '.') {
			percent = percent || text[i] == '%'
			i++
		}
		word := text[start:i]
		if percent {
			for _, in := range m.percentEncoded(word) {
				found = append(found, span{start + in.from, start + in.to})
			}
			continue
		}
		for at := 0; at < len(word); { // the parts of a token are encoded each for itself
			end := at + strings.IndexByte(word[at:]+".", '.')
			if plain, ok := decode(word[at:end]); ok {
				if _, n := m.inside().Text(plain); n > 0 {
					found = append(found, span{start + at, start + end})
				}
			}
			at = end + 1
		}
	}
	return found
}

// percentEncoded finds the secrets in word once it is decoded, by where they are in word.
func (m *Masker) percentEncoded(word string) (found []span) {
	plain, err := url.PathUnescape(word)
	if err != nil || plain == word || m.depth == maxDepth || !m.may(plain) {
		return nil
	}
	at := make([]int, 0, len(word)+1) // where each byte of plain is
	for i := 0; i < len(word); i++ {
		at = append(at, i)
		if word[i] == '%' {
			i += len("%41") - 1
		}
	}
	at = append(at, len(word))
	for _, s := range m.inside().find(plain) {
		m.Mark(plain[s.from:s.to]) // it is learned as it is, too
		found = append(found, span{at[s.from], at[s.to]})
	}
	return found
}

// printable reports whether b has no control characters but those of white space.
func printable(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool {
		return c < ' ' && c != '\n' && c != '\r' && c != '\t' ||
			c == 0x7f
	})
}

// isEncoded reports whether the beginning of word, encodedMin bytes, is base64 of a text's
// beginning. Ids and digests come by here, so it allocates nothing.
func isEncoded(e *base64.Encoding, word string) bool {
	var first [encodedMin]byte
	n, err := e.Decode(first[:], []byte(word[:encodedMin]))
	b := first[:n]
	if err != nil || !printable(b) {
		return false
	}
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			return !utf8.FullRune(b) // a character goes on behind it
		}
		b = b[size:]
	}
	return true
}

// decode reads base64 of a text.
func decode(word string) (plain string, ok bool) {
	word = strings.TrimRight(word, "=")
	if len(word) < encodedMin {
		return "", false
	}
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if !isEncoded(e, word) {
			continue
		}
		b, err := e.DecodeString(word[:len(word)-len(word)%4])
		if rest := word[len(word)-len(word)%4:]; err == nil && len(rest) > 1 {
			last, _ := e.DecodeString(rest)
			b = append(b, last...)
		}
		if err == nil && utf8.Valid(b) && printable(b) {
			return string(b), true
		}
	}
	return "", false
}
