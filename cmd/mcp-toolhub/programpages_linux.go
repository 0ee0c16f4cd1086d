package main

import (
	"bufio"
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// forgetProgram takes pages of the program's own file out of this process. The start has used many once: to read flags, the
// config and schemas. What is used again is mapped again from the system's cache of files, as at its first use.
func forgetProgram() {
	self, err := os.Executable()
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer maps.Close()
	var from, to uint64 // of the mapping that is being read; both 0 where it is not to be touched
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		line := lines.Bytes()
		fields := bytes.Fields(line)
		switch {
		case len(fields) >= 6 && !bytes.HasSuffix(fields[0], []byte(":")): // address, rights, offset, device, inode, file
			from, to = 0, 0
			rights := string(fields[1])
			start, end, _ := bytes.Cut(fields[0], []byte("-"))
			if (rights == "r-xp" || rights == "r--p") && bytes.HasSuffix(line, []byte(" "+self)) {
				from, _ = strconv.ParseUint(string(start), 16, 64)
				to, _ = strconv.ParseUint(string(end), 16, 64)
			}
		case len(fields) >= 2 && string(fields[0]) == "Anonymous:" && string(fields[1]) == "0": // nothing was written to it
			if to > from {
				_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(from), uintptr(to-from), unix.MADV_DONTNEED)
			}
		}
	}
}
