//go:build unix

package code

import "syscall"

// openFlags keep open from waiting for the other end of a pipe and from taking a terminal, should the path have become
// one since it was looked at.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY | syscall.O_CLOEXEC
