package namespace

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// hubScheme is the scheme of the hub's own URIs. toolhub://<server>/<uri> is the resource that server calls uri.
const hubScheme = "toolhub"

// ResourceURI returns the hub's own form of what server calls native. It is understood on every
// surface with that server, listed or not.
func ResourceURI(server, native string) string {
	if isPageURI(normalURI(native)) {
		return hubPage(server, native)
	}
	return hubURI(server, native)
}

// hubURI returns the URI under which the hub shows what server calls native, where native alone does not say whose it
// is. splitURI is its inverse for every native, and for that of hubTemplate.
//
// A native URI that is legal by RFC 3986 stands there as it is: it is a legal path, query and
// fragment too. Any other, and one that whoever tidies paths would change, is percent-encoded as a
// whole after a tilde, with which no URI begins.
func hubURI(server, native string) string {
	prefix := hubScheme + "://" + server + "/"
	if isPlainURI(native) {
		return prefix + native
	}
	return prefix + "~" + escapeAll(native)
}

// hubTemplate is hubURI for a URI template. It stands there as it is, so that the expansion of the
// hub's template is the hub's form of the native one's expansion.
func hubTemplate(server, native string) string { return hubScheme + "://" + server + "/" + native }

// Pages of user interfaces (MCP Apps) are known by their scheme: hosts refuse a tool whose page has another one. So the
// hub's form of ui://<rest> keeps it, in the declarations of tools and of resources: ui://toolhub/<server>/<rest>.
const (
	pageScheme = "ui://"
	pageLead   = pageScheme + hubScheme + "/"
)

// hubPage is hubURI for a page. splitURI is its inverse, too.
func hubPage(server, native string) string {
	rest, ok := strings.CutPrefix(native, pageScheme)
	if ok && isPlainURI(rest) {
		return pageLead + server + "/" + rest
	}
	return pageLead + server + "/~" + escapeAll(native)
}

// splitURI takes a URI of the hub's own forms apart.
func splitURI(uri string) (server, native string, ok bool) {
	if len(uri) >= len(pageLead) && strings.EqualFold(uri[:len(pageLead)], pageLead) {
		server, native, ok = strings.Cut(uri[len(pageLead):], "/")
		if !ok || server == "" || isTemplate(native) {
			return "", "", false
		}
		if encoded, isEncoded := strings.CutPrefix(native, "~"); isEncoded {
			return strings.ToLower(server), unescape(encoded), true
		}
		return strings.ToLower(server), pageScheme + native, true
	}
	const lead = hubScheme + "://"
	if len(uri) < len(lead) || !strings.EqualFold(uri[:len(lead)], lead) {
		return "", "", false
	}
	server, native, ok = strings.Cut(uri[len(lead):], "/")
	if !ok || server == "" {
		return "", "", false
	}
	if encoded, isEncoded := strings.CutPrefix(native, "~"); isEncoded && !isTemplate(native) {
		native = unescape(encoded)
	}
	return strings.ToLower(server), native, true
}

// isPlainURI reports whether native can follow another URI's first slash unchanged.
func isPlainURI(native string) bool {
	if native == "" || native[0] == '~' {
		return false
	}
	for i := 0; i < len(native); i++ {
		switch c := native[i]; {
		case c == '%':
			if _, ok := triplet(native, i); !ok {
				return false
			}
		case !isUnreserved(c) && strings.IndexByte(":/?#@!$&'()*+,;=", c) < 0:
			return false
		}
	}
	path, _, _ := strings.Cut(native, "?")
	for segment := range strings.SplitSeq(path, "/") {
		if isDots(segment) {
			return false
		}
	}
	return true
}

// isDots reports whether segment is one that means this or the parent directory, also to those who decode first.
func isDots(segment string) bool {
	s := unescape(segment)
	return s == "." || s == ".."
}

func isUnreserved(c byte) bool { return isSafe(c) || c == '.' || c == '~' }

// normalURI returns the one form of all URIs that RFC 3986 calls equivalent (section 6.2.2, and 6.2.3 for http): scheme
// and host in lower case; nothing encoded that need not be, and all that must; no dot segments. Characters beyond ASCII
// are as good as their encoding, by RFC 3987.
func normalURI(uri string) string {
	scheme, authority, path, rest := splitAtParts(uri)
	if scheme == "" {
		return normalText(uri)
	}
	scheme = strings.ToLower(scheme)
	path, rest = normalText(path), normalText(rest)
	if authority != "" {
		authority = normalAuthority(scheme, authority)
		if path == "" && (scheme == "http:" || scheme == "https:") {
			path = "/"
		}
	}
	if strings.HasPrefix(path, "/") {
		path = withoutDots(path)
	}
	return scheme + authority + path + rest
}

// splitAtParts splits uri: scheme with its colon, authority with its slashes, path, and the rest
// from ? or # on. Scheme is empty where uri has none; then all else is, too.
func splitAtParts(uri string) (scheme, authority, path, rest string) {
	end := strings.IndexByte(uri, ':')
	if end < 1 {
		return "", "", "", ""
	}
	for i := range end {
		c := uri[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '+' && c != '-' && c != '.') {
			return "", "", "", ""
		}
	}
	scheme, path = uri[:end+1], uri[end+1:]
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path, rest = path[:i], path[i:]
	}
	if strings.HasPrefix(path, "//") {
		to := len(path)
		if i := strings.IndexByte(path[2:], '/'); i >= 0 {
			to = i + 2
		}
		authority, path = path[:to], path[to:]
	}
	return scheme, authority, path, rest
}

// normalAuthority returns the normal form of //user@host:port.
func normalAuthority(scheme, authority string) string {
	user, host := "", authority[2:]
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		user, host = host[:at+1], host[at+1:]
	}
	host = strings.TrimSuffix(host, ":")
	switch scheme {
	case "http:":
		host = strings.TrimSuffix(host, ":80")
	case "https:":
		host = strings.TrimSuffix(host, ":443")
	}
	// Lower case before encoding, for letters beyond ASCII, and after, for what was encoded without need.
	return "//" + normalText(user) + lowerOutside(normalText(strings.ToLower(unescapeFrom(host, utf8.RuneSelf))))
}

// lowerOutside puts everything but percent-encodings into lower case.
func lowerOutside(text string) string {
	b := []byte(text)
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '%':
			i += 2
		case 'A' <= c && c <= 'Z':
			b[i] = c | 0x20
		}
	}
	return string(b)
}

// normalText encodes what cannot stand in a URI and decodes what can stand there without a meaning of its own.
func normalText(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf || !mayStand(byte(r)) }) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c, encoded := triplet(text, i)
		if encoded {
			i += 2
		} else {
			c = text[i]
		}
		if isUnreserved(c) || !encoded && mayStand(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// mayStand reports whether c is unreserved or reserved. A percent sign is neither.
func mayStand(c byte) bool { return isUnreserved(c) || strings.IndexByte(":/?#[]@!$&'()*+,;=", c) >= 0 }

// withoutDots removes dot segments from an absolute path.
func withoutDots(path string) string {
	if !strings.Contains(path, "/.") {
		return path
	}
	segments := strings.Split(path[1:], "/")
	kept := segments[:0:0]
	for i, s := range segments {
		if s == ".." && len(kept) > 0 {
			kept = kept[:len(kept)-1]
		}
		if s != "." && s != ".." {
			kept = append(kept, s)
		} else if i == len(segments)-1 {
			kept = append(kept, "")
		}
	}
	return "/" + strings.Join(kept, "/")
}

// lookOf maps all URIs that a person or a careless program could take for one another to one text:
// those with equal normal forms, those that are equal once decoded, and those that differ in letter
// case or in characters drawn alike.
func lookOf(normal string) string { return foldLook(unescape(normal)) }

// triplet returns the byte that the percent-encoding at text[i:] stands for.
func triplet(text string, i int) (c byte, ok bool) {
	if i+2 >= len(text) || text[i] != '%' {
		return 0, false
	}
	n, err := strconv.ParseUint(text[i+1:i+3], 16, 8)
	return byte(n), err == nil
}

// escapeAll percent-encodes all but unreserved characters.
func escapeAll(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// unescape decodes every percent-encoding. Invalid ones stay.
func unescape(text string) string { return unescapeFrom(text, 0) }

// unescapeFrom decodes the percent-encodings of bytes from least on.
func unescapeFrom(text string, least byte) string {
	if strings.IndexByte(text, '%') < 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c, ok := triplet(text, i)
		if ok && c >= least {
			i += 2
		} else {
			c = text[i]
		}
		b.WriteByte(c)
	}
	return b.String()
}

// isHubURI reports whether a URI of this look is of one of the hub's own forms.
func isHubURI(look string) bool {
	return strings.HasPrefix(look, hubScheme+":") || strings.HasPrefix(look, pageLead)
}

// isPageURI reports whether normal is the URI of a user interface (MCP Apps).
func isPageURI(normal string) bool { return strings.HasPrefix(normal, "ui:") }

// isTemplate reports whether text can only be a URI template: a brace stands in no URI.
func isTemplate(text string) bool { return strings.IndexByte(text, '{') >= 0 }
