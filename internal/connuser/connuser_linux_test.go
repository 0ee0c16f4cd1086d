package connuser

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"testing"
)

// dial connects to address over a network. other makes the socket one of another user, which takes root.
func dial(t *testing.T, network, address string, other bool) (client net.Conn) {
	t.Helper()
	runtime.LockOSThread() // the thread ends with its goroutine, and so does its user
	if other {
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0)
		defer syscall.RawSyscall(syscall.SYS_SETFSUID, uintptr(os.Geteuid()), 0, 0)
	}
	client, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// dialMapped connects to an IPv4 address over an IPv6 socket, as programs in Java do.
func dialMapped(t *testing.T, port int) (fd int) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET6, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Skip("no IPv6 here: ", err)
	}
	if err := syscall.Connect(fd, &syscall.SockaddrInet6{Port: port, Addr: netip.MustParseAddr("127.0.0.1").As16()}); err != nil {
		t.Fatal(err)
	}
	return fd
}

func accept(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestOtherUsersAreTold(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("%s: %v", address, err)
			continue
		}
		defer l.Close()
		for _, other := range []bool{false, true} {
			if other && os.Geteuid() != 0 {
				t.Log("sockets of another user are made by root alone: run the tests as root")
				continue
			}
			client := dial(t, "tcp", l.Addr().String(), other)
			server := accept(t, l)
			bothWays(t, server)
			if IsOther(server) != other {
				t.Errorf("%s: told as a other: %v", address, !other)
			}
			client.Close()
			if !IsOther(server) {
				t.Errorf("%s: a connection that is closed has an owner", address)
			}
			server.Close()
		}
	}
}

// bothWays checks that lookUp tells of the other end of a connection what the tables do, if this kernel has it.
func bothWays(t *testing.T, server net.Conn) {
	t.Helper()
	own, other := server.RemoteAddr().(*net.TCPAddr), server.LocalAddr().(*net.TCPAddr)
	user, inode, ok := lookUp(own, other)
	user2, inode2, ok2 := inTables(own, other)
	if ok && (user != user2 || inode != inode2) || !ok2 {
		t.Errorf("user %s and inode %s by sock_diag, %s and %s by the tables", user, inode, user2, inode2)
	}
	if !ok {
		t.Log("this kernel does not look up a socket")
	}
}

func TestIPv4OverIPv6(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	fd := dialMapped(t, l.Addr().(*net.TCPAddr).Port)
	defer syscall.Close(fd)
	server := accept(t, l)
	defer server.Close()
	bothWays(t, server)
	if IsOther(server) {
		t.Error("the own user is a other over an IPv6 socket")
	}
}
