package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// fixedBelow is above all addresses of a program that is linked to run at fixed ones. The system's loader writes to the pages of
// others, which must not be read from the file again.
const fixedBelow = 1 << 32

// forgetProgram takes pages of the program's own file out of this process. The start has used many once: to read flags, the
// config and schemas. What is used again is mapped again from the system's cache of files, as at its first use, but in small pages: where
// that cache has large ones, a single byte that is read would bring 2 MB back.
func forgetProgram() {
	self, err := os.Executable()
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		_, err := fmt.Sscanf(line, "%x-%x r-", &from, &to) // not writable
		if err == nil && to < fixedBelow && strings.HasSuffix(line, " "+self+"\n") {
			for _, advice := range []uintptr{unix.MADV_NOHUGEPAGE, unix.MADV_DONTNEED} {
				_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(from), uintptr(to-from), advice)
			}
		}
	}
}
