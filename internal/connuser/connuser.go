// Package connuser tells whether a loopback connection comes from another user of this machine. It can do so on Linux.
package connuser

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// Lists of TCP sockets with their owners.
const (
	tableIPv4 = "/proc/self/net/tcp"
	tableIPv6 = "/proc/self/net/tcp6" // also of programs that speak IPv4 over IPv6 sockets
)

// Known reports whether this system tells the users of connections.
func Known() bool {
	_, err := os.Stat(tableIPv4)
	return err == nil
}

// IsOther reports whether another user than that of this process, or root, has made a TCP
// connection that this process has accepted. It is true once that side has closed the connection:
// nothing tells its user any more. It is false for all where Known is.
func IsOther(conn net.Conn) bool {
	local, ok := conn.LocalAddr().(*net.TCPAddr)
	remote, tcp := conn.RemoteAddr().(*net.TCPAddr)
	if !ok || !tcp || !Known() {
		return false
	}
	user, inode, found := lookUp(remote, local)
	if !found {
		user, inode, found = inTables(remote, local)
	}
	return !found || inode == "0" || user != "0" && user != strconv.Itoa(os.Geteuid())
}

// inTables is lookUp for every kernel. It takes milliseconds: the kernel lists all sockets.
func inTables(own, other *net.TCPAddr) (user, inode string, ok bool) {
	for range 2 { // a list that changes while it is read can lack a line
		for _, table := range []string{tableIPv4, tableIPv6} {
			text, _ := os.ReadFile(table) // without IPv6 there is no second one
			_, line, found := bytes.Cut(text, fmt.Appendf(nil, ": %s %s ", entry(table, own), entry(table, other)))
			if fields := strings.Fields(string(line[:min(len(line), 150)])); found && len(fields) > 6 {
				// after the state, both queues, the timer and its retransmits; between them is a
				// timeout
				return fields[4], fields[6], true
			}
		}
	}
	return "", "", false
}

// entry writes an address as the table does: 32 bits at a time, as the processor reads them.
func entry(table string, at *net.TCPAddr) (text string) {
	words := []byte(at.IP.To16())
	if table == tableIPv4 && at.IP.To4() != nil {
		words = words[12:]
	}
	for ; len(words) > 0; words = words[4:] {
		text += fmt.Sprintf("%08X", binary.NativeEndian.Uint32(words))
	}
	return fmt.Sprintf("%s:%04X", text, at.Port)
}
