package connuser

import (
	"bytes"
	"encoding/binary"
	"net"
	"strconv"

	"golang.org/x/sys/unix"
)

// lookUp asks the kernel for one socket. ok is false if it knows none, or cannot say: not all have sock_diag(7).
func lookUp(own, other *net.TCPAddr) (user, inode string, ok bool) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return "", "", false
	}
	defer unix.Close(fd)
	// A struct nlmsghdr and a struct inet_diag_req_v2.
	const size = 72
	ask, number := make([]byte, size), binary.NativeEndian
	number.PutUint32(ask, size)
	number.PutUint16(ask[4:], unix.SOCK_DIAG_BY_FAMILY)
	number.PutUint16(ask[6:], unix.NLM_F_REQUEST)
	ask[16], ask[17] = unix.AF_INET6, unix.IPPROTO_TCP // IPv4 as ::ffff:a.b.c.d
	number.PutUint32(ask[20:], ^uint32(0))             // in any state
	binary.BigEndian.PutUint16(ask[24:], uint16(own.Port))
	binary.BigEndian.PutUint16(ask[26:], uint16(other.Port))
	copy(ask[28:], own.IP.To16())
	copy(ask[44:], other.IP.To16())
	number.PutUint64(ask[64:], ^uint64(0)) // with any cookie
	if unix.Sendto(fd, ask, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
		return "", "", false
	}
	// A struct nlmsghdr and a struct inet_diag_msg: of a socket that listens if the one asked for is gone.
	answer := make([]byte, 512)
	n, _, err := unix.Recvfrom(fd, answer, unix.MSG_DONTWAIT) // Sendto returns when the kernel has answered
	if err != nil || n < 88 || number.Uint16(answer[4:]) != unix.SOCK_DIAG_BY_FAMILY ||
		!bytes.Equal(answer[20:24], ask[24:28]) {
		return "", "", false
	}
	return strconv.Itoa(int(number.Uint32(answer[80:]))), strconv.Itoa(int(number.Uint32(answer[84:]))), true
}
