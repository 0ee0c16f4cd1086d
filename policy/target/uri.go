package target

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// OfURI returns the targets of a resource's URI. A URI of a file or of a host is read as the
// address that a tool gets. Any other scheme is the server's own: the URI is one resource. What it
// holds may still be a path or a host for the server. Those readings are in inside, without faults,
// and most of them mean nothing: see Limits.Guards.
func OfURI(argument, text string, root Root) (targets, inside []Target) {
	t := Target{Kind: URL, Argument: argument, Given: cut(text)}
	scheme, rest, ok := strings.Cut(strings.Map(dropBreaks, trimmed(text)), ":")
	scheme = strings.ToLower(scheme)
	switch _, isWeb := webSchemes()[scheme]; {
	case len(text) > maxText:
		return t.faulty("is over 64 KiB long: send a shorter one"), nil
	case ok && (isWeb || scheme == "file" || slashed(scheme)):
		return urls(t, text, root), nil
	case !ok:
		scheme, rest = "", scheme
	}
	resource := t
	resource.Kind, resource.Resolved = Resource, t.Given
	if strings.HasPrefix(rest, "//") {
		inside = t.read(scheme, rest[2:])
	}
	if decoded, err := url.PathUnescape(rest); err == nil {
		rest = decoded
	}
	for n, i := 0, strings.IndexByte(rest, '/'); i >= 0 && n < maxReadings; n++ {
		inside = append(inside, paths(t, rest[i:], root)...)
		next := strings.IndexByte(rest[i+1:], '/')
		if i += 1 + next; next < 0 {
			break
		}
	}
	for i := range inside {
		inside[i].Fault, inside[i].Notes = "", append(slices.Clip(inside[i].Notes), Wildcard)
	}
	return []Target{resource}, inside
}

const maxReadings = 32 // of one URI as a path

// Guards reports whether t counts wherever it is found, even where it may be no path and no address
// at all: it is sensitive, a secret of the hub, a host that is denied, or an IP address in its
// usual spelling: own://42 may well be the number of something.
func (l *Limits) Guards(t *Target) bool {
	if t.Kind == Path {
		return l.Secret(t) || l.Sensitive(t) != ""
	}
	_, err := netip.ParseAddr(t.Host)
	return err == nil && !t.Has(OddIP) || t.Host != "" && (matchesAny(l.denyHosts, t.Host) || l.denySelf &&
		t.Has(Loopback))
}
