package target

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	whatwg "github.com/nlnwa/whatwg-url/url"
)

// Programs do not agree on what an address is. Node, browsers and much else follow the URL Standard
// of the WHATWG, which takes "http:/host", "http:\\host" and "http:host" for "http://host". Go,
// Python and Java follow RFC 3986 more or less. The hub goes by the URL Standard, and judges every
// other host that the rest would go to. An address with more than one host has a Fault.

// webSchemes are the schemes that the URL Standard calls special, with their ports, and that of a
// host alone. "file" is one as well, and is read as a path.
func webSchemes() map[string]string {
	return map[string]string{"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21", hostAlone: ""}
}

// hostAlone stands for the missing scheme of a host.
const hostAlone = "x-host"

var web = whatwg.NewParser(whatwg.WithSpecialSchemes(webSchemes()))

// slashed reports whether curl reads one slash behind the scheme as two.
func slashed(scheme string) bool {
	switch scheme {
	case "dict", "ftps", "gopher", "gophers", "imap", "imaps", "ldap", "ldaps", "mqtt", "mqtts", "pop3", "pop3s",
		"rtsp", "scp", "sftp", "smb", "smbs",
		"smtp", "smtps", "telnet", "tftp":
		return true
	}
	return false
}

// urls returns the targets of a URL: one for each host that some program connects to.
func urls(t Target, text string, root Root) []Target {
	t.Notes = slices.Clip(t.Notes)
	text = strings.Map(dropBreaks, trimmed(text))
	for _, prefix := range []string{"jdbc:", "url:", "URL:", "view-source:"} {
		text = strings.TrimPrefix(text, prefix)
	}
	scheme, rest, ok := strings.Cut(text, ":")
	scheme = strings.ToLower(scheme)
	behind := strings.TrimLeft(rest, `/\`)
	_, isWeb := webSchemes()[scheme]
	switch {
	case text == "":
		return t.faulty("is empty: send an address")
	case ok && scheme == "file":
		return paths(t, text, root)
	case ok && isWeb && behind == rest: // curl takes http:8080 for a host and its port
		return t.onWeb(scheme, behind, text)
	case ok && isWeb, slashed(scheme) && strings.HasPrefix(rest, "/"):
		return t.read(scheme, behind)
	case !strings.HasPrefix(rest, "//"):
		return t.schemeless(text)
	case !schemeName(scheme):
		return t.faulty("begins with no scheme that is one: write https://, or what it is")
	}
	if tail := rest[2:]; strings.HasPrefix(tail, "/") && (scheme == "sqlite" || scheme == "sqlite3" ||
		scheme == "duckdb") {
		return paths(t, tail[1:], root)
	}
	return t.read(scheme, rest[2:])
}

// faulty is t with a Fault, alone.
func (t Target) faulty(why string) []Target {
	t.Resolved, t.Fault = withoutSecrets(t.Given), why
	return []Target{t}
}

// trimmed removes the characters that programs remove at the ends of text: white space, control
// characters, byte order marks and invisible characters.
func trimmed(text string) string {
	return strings.TrimFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) ||
			dropIgnored(r) < 0
	})
}

// dropBreaks drops the characters that the URL Standard removes everywhere.
func dropBreaks(r rune) rune {
	if r == '\t' || r == '\n' || r == '\r' {
		return -1
	}
	return r
}

// schemeless reads an address without a scheme that a host stands behind.
func (t Target) schemeless(text string) []Target {
	if behind := strings.TrimLeft(text, `/\`); strings.HasPrefix(text, `\`) || len(text)-len(behind) > 1 {
		t.Notes = append(t.Notes, NoScheme)
		return t.read("https", behind)
	}
	scheme, rest, ok := strings.Cut(text, ":")
	if ok {
		switch name := strings.ToLower(scheme); name {
		case "data", "about":
			t.Resolved = name + ":"
			return []Target{t} // reaches nobody
		case "mailto", "sip", "xmpp":
			address, _, _ := strings.Cut(rest, "?")
			if at := strings.LastIndexByte(address, '@'); at >= 0 {
				return t.read(name, address[at+1:])
			}
		case "javascript", "vbscript", "blob", "filesystem", "chrome", "resource", "intent":
			return t.faulty("is no address but a program or a part of a browser: send an https address")
		}
		if strings.Contains(scheme, "@") && !strings.Contains(scheme, "/") { // git@host:path
			return t.read("ssh", scheme+"/"+strings.TrimPrefix(rest, "/"))
		}
	}
	if strings.ContainsRune("/.?#", rune(text[0])) {
		t.Kind, t.Resolved = Resource, t.Given // of the server's own address
		return []Target{t}
	}
	t.Notes = append(t.Notes, NoScheme)
	return t.read("https", text)
}

// read returns the targets of an address by its scheme and what follows the slashes.
func (t Target) read(scheme, rest string) []Target {
	if _, isWeb := webSchemes()[scheme]; isWeb {
		return t.onWeb(scheme, rest)
	}
	authority, tail := cutAuthority(rest)
	var out []Target
	for part := range strings.SplitSeq(authority, ",") { // those of databases may name several hosts
		found, fault := places(part)
		out = append(out, t.at(found, fault, scheme, tail)...)
	}
	return out
}

// onWeb is read for addresses of the URL Standard. others are further texts that programs may read
// as authority and path.
func (t Target) onWeb(scheme, rest string, others ...string) []Target {
	authority, tail := cutAuthority(rest)
	also, fault := places(authority)
	for _, other := range others {
		authority, _ := cutAuthority(other)
		more, _ := places(authority)
		also = append(also, more...)
	}
	if u, err := web.Parse(scheme + "://" + rest); err == nil {
		first, why := hostsOf(u.Hostname())
		for i := range first {
			first[i].port = u.Port()
		}
		also, tail = append(first, also...), u.Pathname()
		if fault = why; strings.Count(authority, "@") > 1 {
			fault = manyAts
		}
	} else if fault == "" {
		fault = "is no address by the URL Standard, and programs read it in several ways: write https://host/path"
	}
	return t.at(also, fault, scheme, tail)
}

// at returns the target for each of the places, of which there should be one.
func (t Target) at(found []place, fault, scheme, tail string) []Target {
	var different []place
	for _, p := range found {
		i := slices.IndexFunc(different, func(other place) bool { return other.host == p.host })
		if i < 0 {
			different = append(different, p)
			continue
		}
		for _, note := range p.notes {
			different[i].notes = addNote(different[i].notes, note)
		}
	}
	if fault == "" && len(different) > 1 {
		fault = "names one host for some programs and another one for others: write https://host/path without " +
			"backslashes, " +
			"the host in ASCII, and its numbers without leading zeros"
	}
	if len(different) == 0 {
		return t.faulty(cmp.Or(fault, "names no host: write the whole address"))
	}
	var out []Target
	for _, p := range different {
		one := t
		one.Host, one.Notes = p.host, slices.Concat(t.Notes, p.notes)
		if fault != "" {
			out = append(out, one.faulty(fault)...)
			continue
		}
		shown := p.host
		if strings.Contains(shown, ":") {
			shown = "[" + shown + "]"
		}
		if p.port != "" && p.port != defaultPort(scheme) {
			shown += ":" + p.port
		}
		one.Resolved = scheme + "://" + shown + cleanPath(tail)
		out = append(out, one)
	}
	return out
}

// cutAuthority cuts off what names user, host and port, as RFC 3986 has it.
func cutAuthority(rest string) (authority, tail string) {
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		return rest[:end], rest[end:]
	}
	return rest, ""
}

const manyAts = "holds more than one @ before its path: which one ends the user name, programs do not agree on"

// place is a host with its port.
type place struct {
	host  string // as Target.Host
	port  string
	notes []Note
}

// places returns the places that programs find in an authority.
func places(authority string) (found []place, fault string) {
	var notes []Note
	given := authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		if user := authority[:at]; user != "" && user != "git" {
			notes = append(notes, UserInfo)
		}
		authority = authority[at+1:]
	}
	texts := []string{authority}
	// Python's urllib decodes before it looks for the port
	if decoded, err := url.PathUnescape(authority); err == nil && decoded != authority {
		before, _, _ := strings.Cut(decoded, `\`)
		before, _ = cutAuthority(before)
		texts = append(texts, before)
	}
	if space := strings.IndexFunc(given, unicode.IsSpace); space >= 0 { // for some programs the host ends there
		texts = append(texts, given[:space])
	}
	for i, text := range texts {
		host, port, why := splitPort(text)
		if why == "" {
			var more []place
			more, why = hostsOf(host)
			for _, p := range more {
				p.port, p.notes = port, slices.Concat(notes, p.notes)
				found = append(found, p)
			}
		}
		if i == 0 {
			fault = why
		}
	}
	if strings.Count(given, "@") > 1 {
		fault = manyAts
	}
	return found, fault
}

func schemeName(s string) bool {
	for i, c := range s {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || (c < '0' || c > '9') && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return s != ""
}

func splitPort(part string) (host, port, fault string) {
	if strings.HasPrefix(part, "[") {
		host, rest, ok := strings.Cut(part[1:], "]")
		if !ok || rest != "" && rest[0] != ':' {
			return "", "", "holds an IPv6 address that does not end: write [address]:port"
		}
		host, port = "["+host, strings.TrimPrefix(rest, ":")
		return host, port, portFault(port)
	}
	if strings.Count(part, ":") > 1 {
		return "", "", "holds more than one colon in its host: write IPv6 addresses in brackets"
	}
	host, port, _ = strings.Cut(part, ":")
	return host, port, portFault(port)
}

func portFault(port string) string {
	if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || strconv.FormatUint(n, 10) != port) {
		return "holds a port that is no number: write one from 1 to 65535"
	}
	return ""
}

func defaultPort(scheme string) string {
	if scheme == "ssh" {
		return "22"
	}
	return webSchemes()[scheme]
}

// cleanPath keeps the path of a URL, dots and escapes resolved, without query and fragment, which may hold secrets.
func cleanPath(tail string) string {
	if end := strings.IndexAny(tail, "?#"); end >= 0 {
		tail = tail[:end]
	}
	if tail == "" {
		return "/"
	}
	u := url.URL{Path: tail}
	if decoded, err := url.PathUnescape(tail); err == nil {
		u.Path = decoded
	}
	return cut(u.JoinPath().EscapedPath())
}

// withoutSecrets removes possible secrets from an address that cannot be normalised, because people and records get it.
func withoutSecrets(text string) string {
	if end := strings.IndexAny(text, "?#"); end >= 0 {
		text = text[:end] + "…"
	}
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return text
	}
	scheme, _, ok := strings.Cut(text[:at], "://")
	if !ok {
		return "…" + text[at:]
	}
	return scheme + "://…" + text[at:]
}
