package target

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// urls returns the targets that a URL is: one for each host that it names.
func urls(t Target, text string, root Root) []Target {
	t.Notes = slices.Clip(t.Notes)
	fault := func(why string) []Target {
		t.Resolved, t.Fault = withoutSecrets(t.Given), why
		return []Target{t}
	}
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return fault("is empty: send an address")
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || unicode.IsSpace(r) || r == utf8.RuneError }):
		return fault("holds white space or a control character, which some programs take away: write the address without")
	case strings.Contains(text, `\`):
		return fault(`holds a backslash, which some programs take for a slash: write the address without`)
	case len(text) > 4 && strings.EqualFold(text[:5], "file:"):
		return paths(t, text, root)
	}
	text = trimPrefixes(text)
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return t.schemeless(text)
	}
	if !schemeName(scheme) {
		return fault("begins with no scheme that is one: write https://, or what it is")
	}
	scheme = strings.ToLower(scheme)
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	if authority == "" && (scheme == "sqlite" || scheme == "sqlite3" || scheme == "duckdb") {
		return paths(t, strings.TrimPrefix(tail, "/"), root)
	}
	return t.authority(scheme, authority, tail)
}

// trimPrefixes takes away what stands before a URL without being one.
func trimPrefixes(text string) string {
	for _, p := range []string{"jdbc:", "url:", "URL:", "view-source:"} {
		text = strings.TrimPrefix(text, p)
	}
	return text
}

func schemeName(s string) bool {
	for i, c := range s {
		if c|0x20 >= 'a' && c|0x20 <= 'z' || i > 0 && (c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.') {
			continue
		}
		return false
	}
	return s != ""
}

// schemeless reads an address without "://".
func (t Target) schemeless(text string) []Target {
	if rest, ok := strings.CutPrefix(text, "//"); ok {
		t.Notes = append(t.Notes, NoScheme)
		authority, tail := rest, ""
		if end := strings.IndexAny(rest, "/?#"); end >= 0 {
			authority, tail = rest[:end], rest[end:]
		}
		return t.authority("https", authority, tail)
	}
	scheme, rest, ok := strings.Cut(text, ":")
	if ok {
		switch strings.ToLower(scheme) {
		case "data", "about":
			t.Resolved = strings.ToLower(scheme) + ":"
			return []Target{t} // reaches nobody
		case "mailto", "sip", "xmpp":
			address, _, _ := strings.Cut(rest, "?")
			if at := strings.LastIndexByte(address, '@'); at >= 0 {
				return t.authority(strings.ToLower(scheme), address[at+1:], "")
			}
		case "javascript", "vbscript", "blob", "filesystem", "chrome", "resource", "intent":
			t.Resolved, t.Fault = withoutSecrets(t.Given), "is no address but a program or a part of a browser: send an https address"
			return []Target{t}
		}
		if at := strings.IndexByte(scheme, '@'); at >= 0 && !strings.Contains(scheme, "/") { // git@host:path
			return t.authority("ssh", scheme, "/"+strings.TrimPrefix(rest, "/"))
		}
	}
	if strings.HasPrefix(text, "/") || strings.HasPrefix(text, ".") || strings.HasPrefix(text, "?") || strings.HasPrefix(text, "#") {
		t.Kind, t.Resolved = Resource, t.Given // of the server's own address
		return []Target{t}
	}
	t.Notes = append(t.Notes, NoScheme)
	authority, tail := text, ""
	if end := strings.IndexAny(text, "/?#"); end >= 0 {
		authority, tail = text[:end], text[end:]
	}
	return t.authority("https", authority, tail)
}

// authority reads user, hosts and port, and completes the target: one for each host.
func (t Target) authority(scheme, authority, tail string) []Target {
	if strings.Count(authority, "@") > 1 {
		t.Resolved, t.Fault = withoutSecrets(t.Given), "holds more than one @ before its path: which one ends the user name, programs do not agree on"
		return []Target{t}
	}
	if user, host, ok := strings.Cut(authority, "@"); ok {
		authority = host
		if user != "" && user != "git" {
			t.Notes = append(t.Notes, UserInfo)
		}
	}
	var out []Target
	for part := range strings.SplitSeq(authority, ",") {
		one := t
		one.Notes = slices.Clone(t.Notes)
		host, port, fault := splitPort(part)
		if fault == "" {
			one.Host, fault = hostName(&one, host)
		}
		if fault != "" {
			one.Resolved, one.Fault = withoutSecrets(t.Given), fault
			out = append(out, one)
			continue
		}
		shown := one.Host
		if strings.Contains(shown, ":") {
			shown = "[" + shown + "]"
		}
		if port != "" && port != defaultPort(scheme) {
			shown += ":" + port
		}
		one.Resolved = scheme + "://" + shown + cleanPath(tail)
		out = append(out, one)
	}
	return out
}

// withoutSecrets is an address that has no one spelling without what may be a secret in it: people see it, and records keep it.
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
	switch scheme {
	case "http", "ws":
		return "80"
	case "https", "wss":
		return "443"
	case "ftp":
		return "21"
	case "ssh":
		return "22"
	}
	return ""
}

// hosts returns the target that a host alone is; it may carry a port.
func hosts(t Target, text string) []Target {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "://") || strings.ContainsAny(text, `/\@`) {
		return urls(t, text, Root{})
	}
	if addr, err := netip.ParseAddr(text); err == nil && addr.Is6() {
		text = "[" + text + "]"
	}
	out := t.authority("host", text, "")
	for i := range out {
		if out[i].Fault == "" {
			out[i].Resolved = strings.TrimSuffix(strings.TrimPrefix(out[i].Resolved, "host://"), "/")
		}
	}
	return out
}

// hostName returns the one spelling of a host. "[" before it marks an IPv6 address.
func hostName(t *Target, host string) (name, fault string) {
	if rest, ok := strings.CutPrefix(host, "["); ok {
		addr, err := netip.ParseAddr(rest)
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return "", "holds an IPv6 address that is none, or one with a zone: write it plainly"
		}
		return address(t, addr), ""
	}
	if strings.Contains(host, "%") {
		return "", "holds an escape in its host: write the host itself"
	}
	name, fault = ascii(t, host)
	if fault != "" {
		return "", fault
	}
	if strings.Contains(name, "..") || strings.HasPrefix(name, ".") {
		return "", "holds an empty part in its host: write the host itself"
	}
	if name = strings.TrimSuffix(name, "."); name == "" || len(name) > 253 {
		return "", "names no host: write the whole address"
	}
	labels := strings.Split(name, ".")
	if numeric(labels[len(labels)-1]) {
		addr, fault := oldIPv4(labels)
		if fault != "" {
			return "", fault
		}
		if addr.String() != name {
			t.Notes = append(t.Notes, OddIP)
		}
		return address(t, addr), ""
	}
	localName(t, labels)
	return name, ""
}

// localName takes note of names that lead to the machine itself or are only valid inside.
func localName(t *Target, labels []string) {
	last := labels[len(labels)-1]
	switch {
	case last == "localhost", last == "localdomain", strings.HasPrefix(last, "ip6-l"):
		t.Notes = append(t.Notes, Loopback)
	case len(labels) == 1, last == "local", last == "internal", last == "lan", last == "intranet", last == "corp", last == "home",
		len(labels) > 1 && labels[len(labels)-2] == "home" && last == "arpa":
		t.Notes = append(t.Notes, Private)
	}
}

// ascii maps a host as the rules for internationalised names do: compatibility forms, full-width dots, letter case and
// invisible characters are taken away, and what is not ASCII then becomes Punycode.
func ascii(t *Target, host string) (string, string) {
	plain := true
	for i := 0; i < len(host); i++ {
		plain = plain && host[i] < utf8.RuneSelf
	}
	if !plain {
		t.Notes = append(t.Notes, IDN)
		host = norm.NFKC.String(strings.Map(dropIgnored, host))
		host = strings.NewReplacer("。", ".", "．", ".", "｡", ".").Replace(host)
		host = norm.NFKC.String(strings.ToLower(host))
	}
	host = strings.ToLower(host)
	labels := strings.Split(host, ".")
	for i, label := range labels {
		for _, r := range label {
			if r < utf8.RuneSelf && (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' ||
				r >= utf8.RuneSelf && !unicode.In(r, unicode.L, unicode.M, unicode.Nd) {
				return "", "holds a character that no host name has: write the host itself"
			}
		}
		encoded, ok := punycode(label)
		if !ok || len(encoded) > 63 {
			return "", "holds a part that is longer than host names allow: write the host itself"
		}
		labels[i] = encoded
		if strings.HasPrefix(encoded, "xn--") && plain {
			t.Notes = append(t.Notes, IDN)
		}
	}
	return strings.Join(labels, "."), ""
}

// dropIgnored drops characters that nobody sees: soft hyphens, joiners, variation selectors, marks of direction.
func dropIgnored(r rune) rune {
	if unicode.In(r, unicode.Cf, unicode.Variation_Selector) || r == 0x034f || r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0 {
		return -1
	}
	return r
}

// punycode encodes a label by RFC 3492 where it is not ASCII.
func punycode(label string) (string, bool) {
	const base, tMin, tMax, skew, damp = 36, 1, 26, 38, 700
	runes := []rune(label)
	out := make([]byte, 0, len(label)+8)
	for _, r := range runes {
		if r < utf8.RuneSelf {
			out = append(out, byte(r))
		}
	}
	if len(out) == len(runes) {
		return label, true
	}
	if len(runes) > 63 {
		return "", false
	}
	basic := len(out)
	done := basic
	if basic > 0 {
		out = append(out, '-')
	}
	n, delta, bias := rune(utf8.RuneSelf), 0, 72
	for done < len(runes) {
		next := rune(utf8.MaxRune + 1)
		for _, r := range runes {
			if r >= n && r < next {
				next = r
			}
		}
		delta += int(next-n) * (done + 1)
		n = next
		for _, r := range runes {
			if r < n {
				delta++
			}
			if r != n {
				continue
			}
			q := delta
			for k := base; ; k += base {
				threshold := min(max(k-bias, tMin), tMax)
				if q < threshold {
					break
				}
				out = append(out, digit(threshold+(q-threshold)%(base-threshold)))
				q = (q - threshold) / (base - threshold)
			}
			out = append(out, digit(q))
			if done == basic {
				delta /= damp
			} else {
				delta /= 2
			}
			done++
			delta += delta / done
			k := 0
			for ; delta > (base-tMin)*tMax/2; k += base {
				delta /= base - tMin
			}
			bias = k + (base-tMin+1)*delta/(delta+skew)
			delta = 0
		}
		delta++
		n++
	}
	return "xn--" + string(out), true
}

func digit(d int) byte {
	if d < 26 {
		return byte('a' + d)
	}
	return byte('0' + d - 26)
}

// numeric reports whether the last label of a host makes it an IPv4 address, as browsers have it.
func numeric(label string) bool {
	if rest, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(rest, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}

// oldIPv4 reads an address of one to four numbers, decimal, octal or hexadecimal, the last of which fills what is left. A
// number that is octal to one program and decimal to another is refused.
func oldIPv4(labels []string) (netip.Addr, string) {
	const wrong = "holds an IP address that is none: write four numbers from 0 to 255"
	if len(labels) > 4 {
		return netip.Addr{}, wrong
	}
	var value uint64
	for i, label := range labels {
		n, ok := number(label)
		if !ok {
			return netip.Addr{}, wrong
		}
		if n.octal != n.decimal {
			return netip.Addr{}, "holds an IP address that is read in two ways, octal and decimal: write it without leading zeros"
		}
		bits := uint(8)
		if i == len(labels)-1 {
			bits = uint(8 * (5 - len(labels)))
		}
		if n.octal >= 1<<bits {
			return netip.Addr{}, wrong
		}
		value = value<<bits | n.octal
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), ""
}

// readings are what a number means to programs that know octal numbers, and to those that do not.
type readings struct{ octal, decimal uint64 }

func number(label string) (readings, bool) {
	if rest, ok := strings.CutPrefix(label, "0x"); ok {
		if rest == "" {
			return readings{}, true
		}
		n, err := strconv.ParseUint(rest, 16, 33)
		return readings{n, n}, err == nil
	}
	decimal, err := strconv.ParseUint(label, 10, 33)
	if err != nil {
		return readings{}, false
	}
	if len(label) == 1 || label[0] != '0' {
		return readings{decimal, decimal}, true
	}
	octal, err := strconv.ParseUint(label, 8, 33)
	if err != nil {
		return readings{decimal + 1, decimal}, true // 08: octal to nobody, and refused by some
	}
	return readings{octal, decimal}, true
}

// address returns the usual form of addr, and takes note of where it lies.
func address(t *Target, addr netip.Addr) string {
	inner := embedded(addr)
	if inner != addr {
		t.Notes = addNote(t.Notes, OddIP)
	}
	switch {
	case inner.IsLoopback(), inner.IsUnspecified():
		t.Notes = append(t.Notes, Loopback)
	case inner.IsLinkLocalUnicast(), inner.IsLinkLocalMulticast():
		t.Notes = append(t.Notes, LinkLocal)
	case inner.IsPrivate(), inner.IsMulticast(), within(inner, "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "0.0.0.0/8",
		"fec0::/10"):
		t.Notes = append(t.Notes, Private)
	}
	if addr.Is4In6() {
		return inner.String()
	}
	return addr.String()
}

func within(addr netip.Addr, prefixes ...string) bool {
	for _, p := range prefixes {
		if prefix, err := netip.ParsePrefix(p); err == nil && prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// embedded returns the IPv4 address that an IPv6 address stands for: mapped, compatible, NAT64 and 6to4.
func embedded(addr netip.Addr) netip.Addr {
	if !addr.Is6() {
		return addr
	}
	if addr.Is4In6() {
		return addr.Unmap()
	}
	b := addr.As16()
	switch {
	case within(addr, "::/96") && !addr.IsLoopback() && !addr.IsUnspecified(), within(addr, "64:ff9b::/96"):
		return netip.AddrFrom4([4]byte(b[12:]))
	case within(addr, "2002::/16"):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return addr
}
