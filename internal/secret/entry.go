package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// Entry is what the entry of a server or of a hook has that may be secret.
type Entry struct {
	Secrets []string // what it refers to: secret, whatever it looks like
	URL     string
	Headers map[string]string
	Env     []string // NAME=value
	Args    []string
}

// minSecret is the length of the shortest secret of an entry. Shorter values would blot out ordinary words.
const minSecret = 6

// ordinary matches words and numbers as they stand in any text, such as AUTH_MODE=default.
var ordinary = regexp.MustCompile(`^([a-z]+([ ._/:;,=+*-]+[a-z]+)*|[0-9.:-]+)$`)

// Known returns the secrets in the entry that are masked in the texts of others, too: not an ordinary word
// that the entry itself holds.
func (e Entry) Known() (all []string) {
	for value := range e.gather() {
		if !ordinary.MatchString(value) || slices.Contains(e.Secrets, value) {
			all = append(all, value)
		}
	}
	return all
}

// Redactor returns a Redactor for the texts of the server whose entry e is.
func (e Entry) Redactor() *Redactor {
	all := make(map[string]bool)
	for value := range e.gather() {
		for _, written := range spellings(value) {
			if written = hidden.Line(written); len(written) >= minSecret {
				all[written] = true
			}
		}
	}
	r := &Redactor{known: slices.Collect(maps.Keys(all))}
	for _, value := range e.Known() {
		if !isCredential(value) {
			continue
		}
		quoted, _ := json.Marshal(value) // a text always encodes
		r.own = append(r.own, value, strings.Trim(string(quoted), `"`), strings.Trim(string(rawjson.Quote(value)), `"`))
	}
	slices.Sort(r.own)
	r.own = slices.Compact(r.own)
	return r
}

// isCredential reports whether a value looks as services make their keys: nobody writes it by chance.
func isCredential(value string) bool {
	return len(value) >= 16 && !strings.ContainsFunc(value, unicode.IsSpace) &&
		strings.ContainsFunc(value, unicode.IsDigit) && strings.ContainsFunc(value, unicode.IsLetter)
}

// gathered are the secrets found in an entry.
type gathered map[string]bool

// gather finds the secrets that an entry refers to, and those in its variables, headers, arguments and URL.
func (e Entry) gather() gathered {
	s := make(gathered)
	for _, value := range e.Secrets {
		s.add(value)
		s.value(value)
	}
	s.address(e.URL)
	for name, value := range e.Headers {
		s.header(name, value)
	}
	for _, entry := range e.Env {
		if name, value, ok := strings.Cut(entry, "="); ok {
			s.named(name, value)
		}
	}
	option := "" // the option whose value comes next
	for _, word := range e.Args {
		s.argument(option, word)
		option = ""
		if strings.HasPrefix(word, "-") && !strings.ContainsAny(word, "=: ") {
			option = word
		}
	}
	return s
}

// add adds each line of a secret.
func (s gathered) add(value string) {
	for line := range strings.SplitSeq(value, "\n") {
		if line = strings.TrimSpace(line); len(line) >= minSecret {
			s[line] = true
		}
	}
}

// named adds a value if its name is that of a secret, and the secrets inside it.
func (s gathered) named(name, value string) {
	if Variable(name) {
		s.add(value)
	}
	s.value(value)
}

// value adds the secrets inside a value of any name: credentials in a URL, or in a JSON object.
func (s gathered) value(value string) {
	switch {
	case strings.HasPrefix(value, "{") && rawjson.Valid([]byte(value)):
		_ = rawjson.Members([]byte(value), func(m rawjson.Member) bool {
			if text, ok := rawjson.String(m.Value); ok {
				s.named(m.Name(), text)
			} else {
				s.value(string(m.Value))
			}
			return true
		})
	case strings.Contains(value, "://"):
		s.address(value)
	}
}

// header adds the whole value of an HTTP header, because people set headers to sign in. Where the
// name is that of a secret, it adds each word, too: "Bearer X", "Token token=X", "a=X; b=Y".
func (s gathered) header(name, value string) {
	s.add(value)
	scheme, credential, ok := strings.Cut(value, " ")
	if ok {
		s.add(credential)
	}
	if decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(credential)); err == nil &&
		strings.EqualFold(scheme, "basic") {
		s.add(string(decoded))
		_, password, _ := strings.Cut(string(decoded), ":")
		s.add(password)
	}
	if Variable(name) {
		for _, word := range strings.FieldsFunc(value,
			func(r rune) bool { return strings.ContainsRune(" \t,;=\"", r) }) {
			if !strings.EqualFold(word, "bearer") && !strings.EqualFold(word, "digest") {
				s.add(word)
			}
		}
	}
}

// argument adds the secrets in a word of the command line. option is the word before it if that is
// an option without a value.
func (s gathered) argument(option, word string) {
	if !strings.HasPrefix(word, "-") {
		s.named(option, word)
	}
	if name, value, ok := strings.Cut(word, "="); ok { // --token=X, NAME=X
		if Variable(name) && !strings.Contains(name, "://") {
			s.add(value)
		}
		s.value(value)
	}
	if name, value, ok := strings.Cut(word, ":"); ok && !strings.HasPrefix(value, "//") && Variable(name) {
		s.header(name, strings.TrimSpace(value)) // --header "Authorization: Bearer X"
	}
	if Token(word) {
		s.add(word)
	}
}

// address adds the credentials of a URL: user information, parameters, fragment, and path segments
// that look like tokens.
func (s gathered) address(raw string) {
	u, err := url.Parse(raw)
	if err != nil || raw == "" {
		return
	}
	if password, ok := u.User.Password(); ok {
		s.add(password)
		s.add(u.User.Username() + ":" + password)
		s.add(base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password))) // as it is sent
	} else if u.User != nil {
		s.add(u.User.Username())
	}
	for _, values := range u.Query() {
		for _, v := range values {
			s.add(v)
		}
	}
	s.add(u.Fragment)
	for segment := range strings.SplitSeq(u.Path, "/") {
		if Token(segment) {
			s.add(segment)
		}
	}
}

// spellings returns the spellings of a secret inside other texts: plain, percent-encoded, as a string of JSON or of a
// programming language, in HTML, in hexadecimal digits, and in base64, also as part of a longer text.
func spellings(secret string) []string {
	percent := url.QueryEscape(secret)
	all := []string{secret, percent, strings.ReplaceAll(percent, "+", "%20"), url.PathEscape(secret),
		html.EscapeString(secret),
		hex.EncodeToString([]byte(secret))}
	for _, form := range all[1:4] {
		all = append(all, percentEncoded.ReplaceAllStringFunc(form, strings.ToLower))
	}
	quoted, _ := json.Marshal(secret) // a text always encodes
	for _, form := range []string{string(quoted), string(rawjson.Quote(secret)), strconv.Quote(secret),
		strconv.QuoteToASCII(secret)} {
		form = form[1 : len(form)-1]
		all = append(all, form, strings.ReplaceAll(form, "/", `\/`))
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			text := encoding.EncodeToString(append(make([]byte, before), secret...))
			from, to := (before*8+5)/6, (before+len(secret))*8/6 // the characters that hold bits of the secret alone
			all = append(all, text[from:to])
		}
	}
	return all
}

var percentEncoded = regexp.MustCompile(`%[0-9A-F]{2}`)
