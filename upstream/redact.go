package upstream

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText bounds a foreign text in an error, a hint or a log record, in bytes.
const maxText = 400

// redactor takes what must not be seen out of texts that come from a server or name one: the values of its secret
// settings, and credentials inside URLs.
type redactor struct {
	secrets *strings.Replacer
}

// minSecret is the shortest value that is treated as a secret: shorter ones would blot out ordinary words.
const minSecret = 6

// secretName matches the names of environment variables whose values are likely secrets. Others are left readable: a
// path or a mode in a message helps more than it harms.
var secretName = regexp.MustCompile(`(?i)key|token|secret|pass|pwd|auth|cred|cookie|private|session|dsn|database_url`)

func newRedactor(cfg ServerConfig) *redactor {
	var pairs []string
	hide := func(value string) {
		if len(value) >= minSecret {
			pairs = append(pairs, value, "***")
		}
	}
	if cfg.URL != "" {
		if u, err := url.Parse(cfg.URL); err == nil {
			pairs = append(pairs, cfg.URL, safeURL(cfg.URL))
			if password, ok := u.User.Password(); ok {
				hide(password)
			}
			for _, values := range u.Query() {
				for _, v := range values {
					hide(v)
					hide(url.QueryEscape(v))
				}
			}
		}
	}
	for _, v := range cfg.Headers {
		hide(v)
		if _, credential, ok := strings.Cut(v, " "); ok { // "Bearer xyz"
			hide(credential)
		}
	}
	for _, entry := range cfg.Env {
		if name, value, ok := strings.Cut(entry, "="); ok && secretName.MatchString(name) {
			hide(value)
		}
	}
	return &redactor{secrets: strings.NewReplacer(pairs...)}
}

// text returns a foreign text fit to be shown: without secrets, control characters and terminal sequences, on one line,
// and not too long.
func (r *redactor) text(s string) string {
	return truncate(cleanText(r.secrets.Replace(urlCredentials.ReplaceAllString(s, "$1$2"))), maxText)
}

// urlCredentials matches the parts of a URL that may hold credentials: user information and query.
var urlCredentials = regexp.MustCompile(`(https?://)(?:[^\s/@"']*@)?([^\s?"'<>]*)(?:\?[^\s"'<>]*)?`)

// safeURL is raw without user information, query and fragment.
func safeURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(malformed URL)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// ansi matches terminal control sequences: CSI, OSC, and two-byte escapes.
var ansi = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-Z\\\\-_])")

// cleanText returns s without terminal sequences and without control, formatting and invalid characters.
func cleanText(s string) string {
	if strings.IndexByte(s, 0x1b) >= 0 {
		s = ansi.ReplaceAllString(s, "")
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, s)
	return strings.TrimSpace(s)
}

// truncate cuts s to at most n bytes at a character's boundary, and marks the cut.
func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
