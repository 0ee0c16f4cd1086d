// Package ipaddr says where in a network an IP address lies. Policy asks it about targets of calls,
// the sign-in about addresses that strangers name.
package ipaddr

import (
	"net/netip"
	"slices"
)

// IsInside reports whether an address is not one of the public Internet. It takes an IPv6 address
// for itself: see Embedded.
func IsInside(addr netip.Addr) bool {
	return addr.IsLoopback() || addr.IsUnspecified() || addr.IsLinkLocalUnicast() || addr.IsMulticast() ||
		addr.IsPrivate() ||
		within(addr, "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "0.0.0.0/8", "fec0::/10")
}

func within(addr netip.Addr, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return netip.MustParsePrefix(p).Contains(addr) })
}

// Embedded returns the IPv4 address that an IPv6 address stands for: mapped, compatible,
// translated, NAT64, 6to4, ISATAP and Teredo.
func Embedded(addr netip.Addr) netip.Addr {
	if !addr.Is6() {
		return addr
	}
	if addr.Is4In6() {
		return addr.Unmap()
	}
	b := addr.As16()
	switch {
	case within(addr, "::/96") && !addr.IsLoopback() &&
		!addr.IsUnspecified(), within(addr, "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48"),
		b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe:
		return netip.AddrFrom4([4]byte(b[12:]))
	case within(addr, "2002::/16"):
		return netip.AddrFrom4([4]byte(b[2:6]))
	case within(addr, "2001::/32"):
		return netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})
	}
	return addr
}
