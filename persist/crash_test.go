//go:build linux || darwin

package persist_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// childEnv makes the test binary play a hub that meets with misfortune: its value is the part, the first argument the
// directory of the journal. A child prints the subject of each event once it was committed.
const childEnv = "PERSIST_TEST_CHILD"

func TestMain(m *testing.M) {
	parts := map[string]func(*os.File, string) error{"endless": commitForever, "idle": commitOnce,
		"limited": commitBeyondLimit, "descriptors": runOutOfFiles}
	part, ok := parts[os.Getenv(childEnv)]
	if !ok {
		os.Exit(m.Run())
	}
	if err := part(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child returns the command that plays part in dir.
func child(t *testing.T, part, dir string, more ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, append([]string{dir}, more...)...)
	cmd.Env = append(os.Environ(), childEnv+"="+part)
	cmd.Stderr = os.Stderr
	return cmd
}

// commitForever commits from several goroutines until it is killed.
func commitForever(out *os.File, dir string) error {
	within, err := time.ParseDuration(os.Args[2])
	if err != nil {
		return err
	}
	j, err := persist.Open(persist.JournalConfig{Dir: dir, MaxBytes: 50_000, MaxFiles: 10_000, SyncWithin: within}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				s := fmt.Sprintf("%d-%d-%d", os.Getpid(), c, i)
				if err := j.Commit(context.Background(), event(s)); err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
				fmt.Fprintln(out, s)
			}
		})
	}
	wg.Wait()
	return errors.New("the commits ended by themselves")
}

// commitOnce commits one event and then does nothing until it is killed.
func commitOnce(out *os.File, dir string) error {
	j, err := persist.Open(persist.JournalConfig{Dir: dir}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if err := j.Commit(context.Background(), event("idle")); err != nil {
		return err
	}
	fmt.Fprintln(out, "idle")
	_, err = io.Copy(io.Discard, os.Stdin) // which stays open as long as the parent lives
	return errors.Join(err, j.Close())
}

// TestKilledHub kills a hub again and again while it commits: each record whose Commit had returned is there, no line
// is damaged, and meanwhile another hub neither takes nor removes its files.
func TestKilledHub(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var promised []string
	for _, within := range []string{"0s", "5ms", "1ms"} {
		cmd := child(t, "endless", dir, within)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		for n := 0; ; n++ {
			line, err := lines.ReadString('\n')
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			promised = append(promised, strings.TrimSuffix(line, "\n"))
			switch n {
			case 100:
				promised = append(promised, fmt.Sprint("other-", len(promised)))
				other := open(t, persist.JournalConfig{Dir: dir, MaxFiles: 10_000})
				commit(t, other, promised[len(promised)-1])
				if err := other.Close(); err != nil {
					t.Fatal(err)
				}
			case 600:
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the child was not killed")
		}
	}
	there := map[string]bool{}
	for _, s := range subjects(t, dir) { // which fails the test if a line is damaged
		there[s] = true
	}
	if len(promised) < 1800 {
		t.Fatalf("only %d commits were promised", len(promised))
	}
	for _, s := range promised {
		if !there[s] {
			t.Fatalf("the commit of %q had returned, but the record is gone", s)
		}
	}
}

// limit sets the soft limit of resource and returns a function that restores it.
func limit(resource int, value uint64) (restore func() error, err error) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(resource, &before); err != nil {
		return nil, err
	}
	if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: value, Max: before.Max}); err != nil {
		return nil, err
	}
	return func() error { return syscall.Setrlimit(resource, &before) }, nil
}

// commitBeyondLimit lets the file reach a limit of the system in the middle of a line, as it would on a full disk.
func commitBeyondLimit(out *os.File, dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	j, err := persist.Open(persist.JournalConfig{Dir: dir}, slog.New(slog.NewTextHandler(out, nil)))
	if err != nil {
		return err
	}
	restore, err := limit(syscall.RLIMIT_FSIZE, 5000)
	if err != nil {
		return err
	}
	for i := 0; err == nil; i++ {
		s := fmt.Sprint("before-", i)
		if err = j.Commit(context.Background(), event(s)); err == nil {
			fmt.Fprintln(out, s)
		}
	}
	if err := checkFull(err); err != nil {
		return err
	}
	if err := checkFull(j.Healthy()); err != nil {
		return fmt.Errorf("Healthy: %w", err)
	}
	var wg sync.WaitGroup
	failures := make([]error, 20)
	for i := range failures {
		wg.Go(func() {
			failures[i] = checkFull(j.Commit(context.Background(), event("lost"), event(strings.Repeat("lost", 2000))))
		})
	}
	wg.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	if err := restore(); err != nil {
		return err
	}
	for i := range 3 {
		s := fmt.Sprint("after-", i)
		if err := j.Commit(context.Background(), event(s)); err != nil {
			return fmt.Errorf("after the limit was lifted: %w", err)
		}
		fmt.Fprintln(out, s)
	}
	return errors.Join(j.Healthy(), j.Close())
}

// checkFull returns nil if err is what a Commit on a full disk returns.
func checkFull(err error) error {
	var journalErr *persist.JournalError
	if !errors.As(err, &journalErr) || !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), "ulimit -f") {
		return fmt.Errorf("on a full disk: %v", err)
	}
	return nil
}

// TestFullDisk checks that the journal holds exactly what was promised before and after the disk was full, and that the
// log names the trouble and its end, once each.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text, err := child(t, "limited", dir).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var promised, log []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.Contains(line, "level=") {
			log = append(log, line)
			continue
		}
		promised = append(promised, line)
	}
	if got := subjects(t, dir); !slices.Equal(got, promised) {
		t.Errorf("the journal holds %q\nwant %q", got, promised)
	}
	if len(promised) < 10 || !slices.Contains(promised, "before-3") {
		t.Errorf("promised only %q", promised)
	}
	if len(log) != 2 || !strings.Contains(log[0], "level=ERROR") || !strings.Contains(log[1], "lost=41") {
		t.Errorf("the log says %q", log)
	}
}

// runOutOfFiles makes it impossible to begin a new file when one is full.
func runOutOfFiles(out *os.File, dir string) error {
	j, err := persist.Open(persist.JournalConfig{Dir: dir, MaxBytes: 500}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	write := func(s string) error {
		if err := j.Commit(context.Background(), event(s)); err != nil {
			return err
		}
		fmt.Fprintln(out, s)
		return nil
	}
	restore, err := limit(syscall.RLIMIT_NOFILE, 3)
	if err != nil {
		return err
	}
	for i := range 10 {
		if err := write(fmt.Sprint("without-", i)); err != nil {
			return err
		}
	}
	if names, err := os.ReadDir(dir); err == nil {
		return fmt.Errorf("the limit has no effect: %v", names)
	}
	if err := restore(); err != nil {
		return err
	}
	return errors.Join(write("with"), j.Close())
}

func TestNoDescriptorForANewFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text, err := child(t, "descriptors", dir).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var promised []string
	for line := range strings.Lines(string(text)) {
		promised = append(promised, strings.TrimSuffix(line, "\n"))
	}
	if got := subjects(t, dir); len(promised) != 11 || !slices.Equal(got, promised) {
		t.Errorf("the journal holds %q, want %q", got, promised)
	}
	if files := journalFiles(t, dir); len(files) != 2 {
		t.Errorf("%d files, want 2", len(files))
	}
}

// TestHubsOfOtherProcesses writes much beside a living hub that writes little, whose file stays until it dies.
func TestHubsOfOtherProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := child(t, "idle", dir)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the child says nothing")
	}
	ours := open(t, persist.JournalConfig{Dir: dir, MaxBytes: 300, MaxFiles: 1})
	commit(t, ours, numbered("ours-", 6)...)
	if got := subjects(t, dir); !slices.Equal(got, []string{"idle", "ours-005"}) {
		t.Errorf("beside a living hub, the journal holds %q", got)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the child was not killed")
	}
	commit(t, ours, "later-0", "later-1")
	if got := subjects(t, dir); !slices.Equal(got, []string{"later-1"}) {
		t.Errorf("after the death of that hub, the journal holds %q", got)
	}
}

// TestDescriptorsOfProcessesBeingStarted goes on to a new file while somebody else has a copy of the descriptor of the
// full one, as a process that is being started has for a moment.
func TestDescriptorsOfProcessesBeingStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, persist.JournalConfig{Dir: dir, MaxBytes: 300, MaxFiles: 1})
	commit(t, j, "first")
	copied := 0
	descriptors, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("the system does not list descriptors: %v", err)
	}
	for _, d := range descriptors {
		name, err := os.Readlink("/proc/self/fd/" + d.Name())
		if err != nil || filepath.Dir(name) != dir {
			continue
		}
		fd, err := strconv.Atoi(d.Name())
		if err != nil {
			t.Fatal(err)
		}
		kept, err := syscall.Dup(fd)
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(kept)
		copied++
	}
	if copied == 0 {
		t.Fatal("no descriptor of the journal was found")
	}
	commit(t, j, numbered("later-", 4)...)
	if got := subjects(t, dir); !slices.Equal(got, []string{"later-003"}) {
		t.Errorf("the journal holds %q", got)
	}
}
