//go:build unix

package run

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be the guard and a parent that has children and is killed.
func TestMain(m *testing.M) {
	Main()
	if os.Getenv("GUARD_TEST_PARENT") != "" {
		parent()
		return
	}
	os.Exit(m.Run())
}

// parent starts three children, takes one off the list, prints all process ids that it knows, and waits to be killed.
func parent() {
	self, _ := os.Executable()
	l := NewLauncher(self, slog.Default())
	scripts := []string{
		"trap '' TERM; echo $$; sleep 300 & echo $!; wait",    // does not end when asked, and has a child
		"setsid sleep 300 & echo $$; echo $!; exec sleep 300", // its child has left the group
		"echo $$; echo 0; exec sleep 300",                     // is taken off the list: nobody's business any more
	}
	for i, script := range scripts {
		p, err := l.Start(Program{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: os.Environ()})
		if err != nil {
			panic(err)
		}
		lines := bufio.NewScanner(p.Stdout)
		for range 2 {
			lines.Scan()
			fmt.Println(lines.Text())
		}
		if i == 2 {
			l.tell(order{Mark: p.mark, Gone: true})
		}
	}
	fmt.Println("ready")
	select {}
}

func TestChildrenEndWithAParentThatIsKilled(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "GUARD_TEST_PARENT=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		if pid, err := strconv.Atoi(strings.TrimSpace(lines.Text())); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	if len(pids) != 5 {
		t.Fatalf("children %v", pids)
	}
	spared := pids[4]
	t.Cleanup(func() { kill(spared) })
	killed := time.Now()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for _, pid := range pids[:4] {
		for !gone(pid) {
			if time.Since(killed) > time.Minute {
				t.Fatalf("process %d of %v is still there", pid, pids)
			}
			<-again.C
		}
	}
	t.Logf("all gone after %s", time.Since(killed))
	if gone(spared) {
		t.Error("a process that was taken off the list was ended")
	}
}

// gone reports whether a process is dead; one that nobody has waited for counts as dead.
func gone(pid int) bool {
	if !alive(pid) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !alive(pid)
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}

func TestCloseEndsTheGuard(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := NewLauncher(self, slog.New(slog.DiscardHandler))
	p, err := l.Start(Program{Path: "/bin/sh", Args: []string{"sh", "-c", "exit 3"}})
	if err != nil {
		t.Fatal(err)
	}
	if <-p.Ended; p.State().ExitCode() != 3 {
		t.Errorf("the program ended as %v", p.State())
	}
	if err := l.Close(); err != nil || l.Close() != nil {
		t.Errorf("Close: %v", err)
	}
	var log bytes.Buffer
	l = NewLauncher("/no/such/program", slog.New(slog.NewTextHandler(&log, nil)))
	if p, err = l.Start(Program{Path: "/bin/true"}); err != nil {
		t.Fatal(err)
	}
	if <-p.Ended; !strings.Contains(log.String(), "survive a hub") {
		t.Errorf("a guard that cannot be started is not in the log: %q", log.String())
	}
}

func TestGuardRefusesNonsense(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x\n", `{"Mark":"m","PID":1}`, `{"PID":5}`, `{"Mark":"m"`} {
		if err := guard(strings.NewReader(text)); err == nil {
			t.Errorf("%q was taken for an order", text)
		}
	}
}
