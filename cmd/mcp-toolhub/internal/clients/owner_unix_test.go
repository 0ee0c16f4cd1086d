//go:build unix

package clients_test

import (
	"os"
	"syscall"
	"testing"
)

// TestOwner: the file and its backup stay those of the user whose they are, also where root runs the command.
func TestOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	m := newMachine(t)
	path := m.write("cursor", []byte("{}\n"), 0o600)
	must(t, os.Chown(path, 12345, 12346))
	owned := func(file string) {
		t.Helper()
		info, err := os.Stat(file)
		must(t, err)
		if s := info.Sys().(*syscall.Stat_t); s.Uid != 12345 || s.Gid != 12346 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s is of %d:%d, mode %o", file, s.Uid, s.Gid, info.Mode())
		}
	}
	must(t, m.connect("cursor", hub, none))
	owned(path)
	owned(path + ".before-toolhub")
	must(t, m.disconnect("cursor"))
	owned(path)
}
