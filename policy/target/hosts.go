package target

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/mcp-toolhub/mcp-toolhub/internal/ipaddr"
)

// hosts returns the targets of a host without a scheme. It may have a port.
func hosts(t Target, text string) []Target {
	text = strings.Map(dropBreaks, trimmed(text))
	scheme, _, ok := strings.Cut(text, ":")
	if _, isWeb := webSchemes()[strings.ToLower(scheme)]; ok && isWeb || strings.ContainsAny(text, `/\@`) {
		return urls(t, text, Root{})
	}
	if addr, err := netip.ParseAddr(text); err == nil && addr.Is6() {
		text = "[" + text + "]"
	}
	out := t.read(hostAlone, text)
	for i := range out {
		if out[i].Fault == "" {
			out[i].Resolved = strings.TrimSuffix(strings.TrimPrefix(out[i].Resolved, hostAlone+"://"), "/")
		}
	}
	return out
}

// hostsOf returns the hosts that programs take text for, each in its one spelling: one, but where
// letters or numbers are read in two ways. fault says why text is none, or no program's.
func hostsOf(text string) (found []place, fault string) {
	if rest, ok := strings.CutPrefix(text, "["); ok {
		plain, _, zoned := strings.Cut(strings.TrimSuffix(rest, "]"), "%")
		addr, err := netip.ParseAddr(plain)
		if err != nil || !addr.Is6() {
			return nil, "holds an IPv6 address that is none: write it plainly"
		}
		if zoned {
			fault = "holds an IPv6 address with a zone: write it plainly"
		}
		return []place{address(addr)}, fault
	}
	names, notes, fault := ascii(text)
	for _, name := range names {
		more, why := named(name)
		for _, p := range more {
			p.notes = slices.Concat(notes, p.notes)
			found = append(found, p)
		}
		fault = cmp.Or(fault, why)
	}
	return found, fault
}

// named returns the hosts that programs read a name in ASCII as.
func named(name string) (found []place, fault string) {
	name, dotted := strings.CutSuffix(name, ".")
	labels := strings.Split(name, ".")
	if slices.Contains(labels, "") && (name != "" || dotted) {
		return nil, "holds an empty part in its host: write the host itself"
	}
	if name == "" || len(name) > 253 {
		return nil, "names no host: write the whole address"
	}
	if !numeric(labels[len(labels)-1]) {
		if slices.ContainsFunc(labels, func(label string) bool { return len(label) > 63 }) {
			return nil, "holds a part that is longer than host names allow: write the host itself"
		}
		return []place{{host: name, notes: localName(labels)}}, ""
	}
	addrs, fault := oldIPv4(labels)
	for _, addr := range addrs {
		p := address(addr)
		if addr.String() != name {
			p.notes = addNote(p.notes, OddIP)
		}
		found = append(found, p)
	}
	return found, fault
}

// localName takes note of names that lead to the machine itself or are only valid inside.
func localName(labels []string) []Note {
	last := labels[len(labels)-1]
	switch {
	case last == "localhost", last == "localdomain", strings.HasPrefix(last, "ip6-l"):
		return []Note{Loopback}
	case len(labels) == 1, last == "local", last == "internal", last == "lan", last == "intranet", last == "corp",
		last == "home",
		len(labels) > 1 && labels[len(labels)-2] == "home" && last == "arpa":
		return []Note{Private}
	}
	return nil
}

// The rules for names with letters beyond ASCII, as the URL Standard takes them, and as Python's own codec and older
// programs do: to these "ß" is "ss", and joiners are not there.
var (
	lookup     = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.CheckHyphens(false), idna.StrictDomainName(false))
	transition = idna.New(idna.MapForLookup(), idna.CheckHyphens(false), idna.StrictDomainName(false),
		idna.CheckJoiners(false), idna.Transitional(true))
)

// ascii returns a host in ASCII: by one rule or two, where these differ.
func ascii(host string) (names []string, notes []Note, fault string) {
	const wrong = "holds a character that no host name has: write the host itself"
	plain := !strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf })
	names = []string{strings.ToLower(host)}
	switch {
	case plain && strings.Contains(names[0], "xn--"):
		notes = []Note{IDN}
	case !plain:
		notes, names = []Note{IDN}, nil
		for _, rule := range []*idna.Profile{lookup, transition} {
			if name, err := rule.ToASCII(host); err == nil && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 || strings.ContainsFunc(strings.Join(names, ""), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	}) {
		return nil, nil, wrong
	}
	return names, notes, ""
}

// dropIgnored drops characters that nobody sees: soft hyphens, joiners, variation selectors, marks of direction.
func dropIgnored(r rune) rune {
	if unicode.In(r, unicode.Cf, unicode.Variation_Selector) || r == 0x034f || r == 0x115f || r == 0x1160 ||
		r == 0x3164 || r == 0xffa0 {
		return -1
	}
	return r
}

// numeric reports whether the last label of a host makes it an IPv4 address, as browsers have it.
func numeric(label string) bool {
	if rest, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(rest, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}

// oldIPv4 reads an address of one to four numbers, decimal, octal or hexadecimal, the last of which
// fills what is left. It is two where a number is octal to one program and decimal to another.
func oldIPv4(labels []string) (found []netip.Addr, fault string) {
	const wrong = "holds an IP address that is none: write four numbers from 0 to 255"
	for _, octal := range []bool{true, false} {
		addr, ok := ipv4(labels, octal)
		if ok && !slices.Contains(found, addr) {
			found = append(found, addr)
		}
		if !ok {
			fault = wrong // to one of them at least
		}
	}
	if len(found) > 1 {
		fault = "holds an IP address that is read in two ways, octal and decimal: write it without leading zeros"
	}
	return found, fault
}

func ipv4(labels []string, octal bool) (netip.Addr, bool) {
	if len(labels) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, label := range labels {
		n, ok := number(label, octal)
		bits := uint(8)
		if i == len(labels)-1 {
			bits = uint(8 * (5 - len(labels)))
		}
		if !ok || n >= 1<<bits {
			return netip.Addr{}, false
		}
		value = value<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

// number reads a number. One that begins with 0 is octal to programs that know such numbers.
func number(label string, octal bool) (uint64, bool) {
	base := 10
	switch rest, hex := strings.CutPrefix(label, "0x"); {
	case hex && rest == "":
		return 0, true
	case hex:
		label, base = rest, 16
	case octal && len(label) > 1 && label[0] == '0':
		base = 8
	}
	n, err := strconv.ParseUint(label, base, 33)
	return n, err == nil
}

// address returns addr in its usual form, with notes of where it lies.
func address(addr netip.Addr) place {
	p := place{host: addr.String()}
	inner := ipaddr.Embedded(addr)
	if inner != addr {
		p.notes = append(p.notes, OddIP)
	}
	switch {
	case inner.IsLoopback(), inner.IsUnspecified():
		p.notes = append(p.notes, Loopback)
	case inner.IsLinkLocalUnicast(), inner.IsLinkLocalMulticast():
		p.notes = append(p.notes, LinkLocal)
	case ipaddr.IsInside(inner):
		p.notes = append(p.notes, Private)
	}
	if addr.Is4In6() {
		p.host = inner.String()
	}
	return p
}
