package secret

import (
	"net/url"
	"slices"
	"strings"
)

const (
	maxOddPassword = 256        // bytes of user information with a slash in it
	maxParameter   = 128        // bytes of the name of a parameter
	shellSigns     = ";|&()<>`" // what a shell gives a meaning, as far as it lets another command begin
)

// inAddresses finds the secrets in the addresses of a text: passwords and tokens before the host,
// and values of parameters that are named like secrets. strict and command are those of a Masker.
func inAddresses(text string, strict, command bool) []span {
	if !strings.ContainsAny(text, "@=") {
		return nil
	}
	m := addresses{text: text, strict: strict, command: command}
	m.find()
	return m.found
}

// addresses is one inAddresses.
type addresses struct {
	text            string
	strict, command bool
	found           []span
	done            int // the end of what was found last

	end    int // of the word that is looked at, as far as that has been asked for
	lastAt int // the last "@" in it, or less than where it was asked for
}

// add adds text[from:to], which is behind everything that was found before.
func (m *addresses) add(from, to int) {
	if text := m.text[from:to]; from >= m.done && from < to && !strings.HasPrefix(text, MarkStart) &&
		!(m.command && hidesCommand(text)) {
		m.found = append(m.found, span{from, to})
		m.done = to
	}
}

func hidesCommand(text string) bool {
	return strings.ContainsAny(text, shellSigns) || strings.Contains(text, "$(")
}

// withoutCommands returns found without what a shell could take for a command: what it substitutes, and
// what follows on a sign outside of quotes.
func withoutCommands(text string, found []span) (kept []span) {
	for _, s := range found {
		value, behind := text[s.from:s.to], text[s.to:]
		if i := strings.IndexAny(value, shellSigns); i >= 0 && !strings.HasPrefix(behind, `"`) &&
			!strings.HasPrefix(behind, "'") {
			s.to = s.from + i
		}
		if s.from < s.to && !strings.Contains(value, "$(") && !strings.Contains(text[max(0, s.from-1):s.to], "`") {
			kept = append(kept, s)
		}
	}
	return kept
}

func (m *addresses) find() {
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

// authority finds what is secret in the user information of the authority that begins at i.
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
	case !both && (m.strict && m.isWeb(i) && user != "git" || Token(user)), both &&
		(password == "" || Token(user) || password == "x-oauth-basic"):
		m.add(i, i+len(user)) // https://TOKEN@host and https://TOKEN:x@host are usual
	}
	if both && (m.strict || !placeholder(password)) {
		m.add(i+len(user)+1, i+at)
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

// parameter finds the value of the parameter that begins at i if it is named like a secret.
func (m *addresses) parameter(i int) {
	equals := m.until(i, "=&;?#")
	if equals == len(m.text) || m.text[equals] != '=' || equals-i > maxParameter {
		return
	}
	name, stop := m.text[i:equals], "&#"
	if m.command {
		stop += ";|()"
	}
	if decoded, err := url.QueryUnescape(name); err == nil {
		name = decoded
	}
	if Parameter(name) || strings.EqualFold(name, "key") && Token(m.text[equals+1:m.until(equals+1, stop+"?")]) {
		m.add(equals+1, m.until(equals+1, stop))
	}
}
