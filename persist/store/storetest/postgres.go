// Package storetest runs PostgreSQL for tests: the real programs, in a scratch directory, reached
// through a socket there.
package storetest

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"
)

// Required names an environment variable with which missing programs are a failure, as in .ci/run.
const Required = "TOOLHUB_POSTGRES"

// Server is a PostgreSQL server. It ends with this process, however that ends, and leaves nothing behind.
type Server struct {
	dir, programs string
	cmd           *exec.Cmd
	keeps         io.WriteCloser // the server runs while this is open
	rest          sync.WaitGroup // reads what the server says
	databases     int
}

var shared struct {
	sync.Mutex
	*Server
}

// Database returns the URL of an empty database, on a server that all tests of this process share.
// Its user may do everything.
func Database(t testing.TB) string {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.Server == nil {
		shared.Server = start(t)
	}
	return shared.Database(t)
}

// Start starts a server of the test's own. Its methods are for one goroutine.
func Start(t testing.TB) *Server {
	t.Helper()
	s := start(t)
	t.Cleanup(func() {
		if s.keeps != nil {
			_ = s.keeps.Close() // which removes the directory, too
			s.wait()
		} else if err := os.RemoveAll(s.dir); err != nil {
			t.Error(err)
		}
	})
	return s
}

func start(t testing.TB) *Server {
	t.Helper()
	found, err := programs()
	switch {
	case err != nil && os.Getenv(Required) != "":
		t.Fatal(err)
	case err != nil:
		t.Skip(err)
	}
	s := &Server{programs: found}
	if s.dir, err = os.MkdirTemp("/tmp", "toolhub-postgres-"); err == nil { // names of sockets are short
		err = errors.Join(os.Chmod(s.dir, 0o700), giveAway(s.dir))
	}
	if err != nil {
		t.Fatal(err)
	}
	initdb := exec.Command(filepath.Join(s.programs, "initdb"), "-D", s.data(), "-U", "hub", "-A", "trust", "-E",
		"UTF8", "--locale=C", "--no-sync")
	initdb.Dir = s.dir
	asAnother(initdb)
	if text, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, text)
	}
	s.Run(t)
	s.exec(t, "CREATE ROLE guarded LOGIN PASSWORD 'the right one'", "CREATE ROLE guest LOGIN")
	return s
}

// Missing returns nil where PostgreSQL is installed, and otherwise what to do.
func Missing() error {
	_, err := programs()
	return err
}

// programs returns the directory of initdb and postgres.
func programs() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	for _, dir := range slices.Concat(filepath.SplitList(os.Getenv("PATH")), found) {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil && runtime.GOOS != "windows" {
			if _, err := os.Stat(filepath.Join(dir, "postgres")); err == nil {
				return dir, nil
			}
		}
	}
	return "", errors.New("PostgreSQL is not tested: initdb and postgres are neither in PATH nor in " +
		"/usr/lib/postgresql: " +
		"install PostgreSQL (Debian: postgresql)")
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Run starts a server that was stopped, and returns when it takes connections.
func (s *Server) Run(t testing.TB) {
	t.Helper()
	// The password of guarded counts; the others are let in.
	rules := "local all guarded scram-sha-256\nlocal all all trust\n"
	hba := filepath.Join(s.dir, "hba.conf")
	if err := errors.Join(os.WriteFile(hba, []byte(rules), 0o600), giveAway(hba)); err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command("sh", "-c",
		`"$0" "$@" & if read line; then kill -INT $!; wait; else kill -QUIT $!; wait; rm -rf "$PWD"; fi`,
		filepath.Join(s.programs, "postgres"), "-D", s.data(), "-k", s.dir, "-c", "listen_addresses=", "-c",
		"hba_file="+hba,
		"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off", "-c", "shared_buffers=16MB",
		"-c", "jit=off")
	s.cmd.Dir, s.cmd.Env = s.dir, append(os.Environ(), "LC_ALL=C")
	asAnother(s.cmd)
	said, err := s.cmd.StderrPipe()
	if err == nil {
		s.keeps, err = s.cmd.StdinPipe()
	}
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for text := ""; !strings.Contains(text, "ready to accept connections"); {
		if !lines.Scan() {
			t.Fatalf("PostgreSQL does not start: %s", text)
		}
		text += lines.Text() + "\n"
	}
	s.rest.Go(func() {
		for lines.Scan() {
			continue
		}
	})
}

// Stop stops the server. Run starts it again.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if _, err := io.WriteString(s.keeps, "stop\n"); err != nil {
		t.Fatal(err)
	}
	s.wait()
	s.keeps = nil
}

func (s *Server) wait() {
	s.rest.Wait()
	_ = s.cmd.Wait()
}

// Database returns the URL of an empty database.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	s.databases++
	name := fmt.Sprint("db", s.databases)
	s.exec(t, "CREATE DATABASE "+name+" TEMPLATE template0")
	return s.url(name)
}

func (s *Server) url(database string) string {
	return "postgres://hub@/" + database + "?" + url.Values{"host": {s.dir}}.Encode()
}

func (s *Server) exec(t testing.TB, statements ...string) {
	t.Helper()
	db, err := sql.Open("pgx", s.url("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
