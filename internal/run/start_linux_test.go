package run

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
)

// TestStartOfProgramThatIsStillOpenForWriting: a program that somebody still holds open for writing is started as soon as it
// is closed. One that stays open is reported as busy.
func TestStartOfProgramThatIsStillOpenForWriting(t *testing.T) {
	// Not parallel: a child that another test forks would hold the file, too.
	synctest.Test(t, func(t *testing.T) {
		program := filepath.Join(t.TempDir(), "program")
		file, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o700)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString("#!/bin/sh\nexit 7\n"); err != nil {
			t.Fatal(err)
		}
		if err := startGroup(exec.Command(program)); !errors.Is(err, syscall.ETXTBSY) {
			t.Fatalf("open for writing all the time: %v", err)
		}
		cmd := exec.Command(program)
		started := make(chan error, 1)
		go func() { started <- startGroup(cmd) }()
		synctest.Wait() // it has failed once and waits
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-started; err != nil {
			t.Fatal(err)
		}
		if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 7 {
			t.Errorf("the program ended as %v", cmd.ProcessState)
		}
	})
}
