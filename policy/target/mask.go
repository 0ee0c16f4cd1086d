package target

import (
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// Mask stands where a secret was.
const Mask = "[masked]"

// marked begins what stands there in records, with a digest. It stays.
const marked = "[masked:"

const (
	maxNestedAddress = 3          // addresses in the parameters of addresses that are looked into
	maxOddPassword   = 256        // bytes of user information with a slash in it
	maxParameter     = 128        // bytes of the name of a parameter
	secretLength     = 20         // from here on a text without separators may be a token
	shellSigns       = ";|&()<>`" // what a shell gives a meaning, as far as it lets another command begin
)

// Masked returns text with the secrets in its addresses replaced: passwords and tokens before the host, and values of parameters
// that are named like secrets. People and records get the masked text; nothing is decided by it. With command, text may be a
// command or a program: then nothing is masked that could hide a command.
func Masked(text string, command bool) string {
	if !strings.ContainsAny(text, "@=") {
		return text
	}
	return (&addresses{text: text, command: command}).masked()
}

// Shown returns t without its secrets.
func (t *Target) Shown() Target {
	out := *t
	out.Given, out.Resolved = Masked(t.Given, t.Kind == Command), Masked(t.Resolved, t.Kind == Command)
	return out
}

// addresses is one Masked.
type addresses struct {
	text    string
	command bool
	depth   int // of the addresses that it stands in
	out     strings.Builder
	done    int // bytes of text that are in out, or masked

	end    int // of the word that is looked at, as far as that has been asked for
	lastAt int // the last "@" in it, or less than where it was asked for
}

// replace puts with in the place of text[from:to], which is behind everything that was replaced before.
func (m *addresses) replace(from, to int, with string) {
	if from < m.done || from == to || strings.HasPrefix(m.text[from:to], marked) || with == Mask && m.command && hidesCommand(m.text[from:to]) {
		return
	}
	m.out.WriteString(m.text[m.done:from])
	m.out.WriteString(with)
	m.done = to
}

func hidesCommand(text string) bool {
	return strings.ContainsAny(text, shellSigns) || strings.Contains(text, "$(")
}

func (m *addresses) masked() string {
	query := false // a "?" or "#" stands before in the same word
	for i := 0; i < len(m.text); i++ {
		c := m.text[i]
		switch {
		case ends(c):
			query = false
		case c == '/' && i+1 < len(m.text) && (m.text[i+1] == '/' || i > 0 && m.text[i-1] == ':'):
			for i+1 < len(m.text) && m.text[i+1] == '/' {
				i++
			}
			m.authority(i + 1)
		case c == '?' || c == '#' || query && (c == '&' || c == ';'):
			query = true
			m.parameter(i + 1)
		}
		i = max(i, m.done-1)
	}
	if m.done == 0 {
		return m.text
	}
	m.out.WriteString(m.text[m.done:])
	return m.out.String()
}

// ends reports whether c stands in no address.
func ends(c byte) bool { return c <= ' ' || c == 0x7f || strings.IndexByte("\"'<>`", c) >= 0 }

// until returns the index of the first byte from i on that ends an address or is among more.
func (m *addresses) until(i int, more string) int {
	for i < len(m.text) && !ends(m.text[i]) && strings.IndexByte(more, m.text[i]) < 0 {
		i++
	}
	return i
}

// authority masks what is secret in the user information of the authority that begins at i.
func (m *addresses) authority(i int) {
	end := m.until(i, "/?#\\")
	at := strings.LastIndexByte(m.text[i:end], '@')
	if at < 0 {
		// A password may hold a slash that should have been escaped: then what looks like a port is none.
		_, port, ok := strings.Cut(m.text[i:end], ":")
		if !ok || m.text[i] == '[' || strings.Trim(port, "0123456789") == "" || strings.IndexByte("${", port[0]) >= 0 {
			return
		}
		if at = m.lastOfWord(end) - i; at < 0 || at > maxOddPassword {
			return
		}
	}
	info := m.text[i : i+at]
	user, password, both := strings.Cut(info, ":")
	switch {
	case !both && (m.isWeb(i) && user != "git" || isToken(user)), both && (password == "" || isToken(user) || password == "x-oauth-basic"):
		m.replace(i, i+len(user), Mask) // https://TOKEN@host and https://TOKEN:x@host are usual
	}
	if both {
		m.replace(i+len(user)+1, i+at, Mask)
	}
}

// lastOfWord returns the index of the last "@" between i and the end of its word; less than i where there is none.
func (m *addresses) lastOfWord(i int) int {
	if i >= m.end {
		m.end = m.until(i, "")
		m.lastAt = i + strings.LastIndexByte(m.text[i:m.end], '@')
	}
	return m.lastAt
}

// isWeb reports whether addresses of the scheme before i need no user name, or there is no scheme.
func (m *addresses) isWeb(i int) bool {
	before := strings.TrimRight(m.text[:i], "/")
	before, ok := strings.CutSuffix(before, ":")
	if !ok {
		return true
	}
	return slices.ContainsFunc([]string{"http", "https", "ws", "wss", "ftp"}, func(scheme string) bool {
		return len(before) >= len(scheme) && strings.EqualFold(before[len(before)-len(scheme):], scheme)
	})
}

// isToken reports whether text may be a token: long, in one piece, and of letters and digits.
func isToken(text string) bool {
	digits := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c|0x20 >= 'a' && c|0x20 <= 'z', c == '_', c == '-', c == '%', c == '+', c == '=':
		default:
			return false
		}
	}
	return len(text) >= secretLength && digits > 0
}

// parameter masks the value of the parameter that begins at i if it is named like a secret.
func (m *addresses) parameter(i int) {
	equals := m.until(i, "=&;?#")
	if equals == len(m.text) || m.text[equals] != '=' || equals-i > maxParameter {
		return
	}
	stop := "&#"
	if m.command {
		stop += ";|()"
	}
	switch name := m.text[i:equals]; {
	case !secretName(name):
	case !strings.EqualFold(name, "key") || isToken(m.text[equals+1:m.until(equals+1, stop+"?")]):
		m.replace(equals+1, m.until(equals+1, stop), Mask)
		return
	}
	end := m.until(equals+1, stop+"?")
	value := m.text[equals+1 : end]
	if m.depth < maxNestedAddress && strings.Contains(value, "%") { // may be an address itself
		decoded, err := url.QueryUnescape(value)
		if err != nil || !strings.ContainsAny(decoded, "@=") {
			return
		}
		inner := &addresses{text: decoded, command: m.command, depth: m.depth + 1}
		if shown := inner.masked(); shown != decoded {
			m.replace(equals+1, end, strings.ReplaceAll(url.QueryEscape(shown), url.QueryEscape(Mask), Mask))
		}
	}
}

// secretName reports whether a parameter of that name holds a secret, or may.
func secretName(name string) bool {
	if decoded, err := url.QueryUnescape(name); err == nil {
		name = decoded
	}
	return facts.SecretParameter(name) || strings.EqualFold(name, "key")
}
