package run

import (
	"bufio"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestStraysOfChildrenThatEndTogether: nothing that any of several children has started is left when its search is over.
func TestStraysOfChildrenThatEndTogether(t *testing.T) {
	t.Parallel()
	const children, rounds = 8, 5
	l := NewLauncher("", slog.New(slog.DiscardHandler))
	var all sync.WaitGroup
	for range children {
		all.Go(func() {
			for range rounds {
				p, err := l.Start(Program{Path: "/bin/sh", Env: os.Environ(),
					Args: []string{"sh", "-c", "setsid sleep 300 >/dev/null & echo $!"}})
				if err != nil {
					t.Error(err)
					return
				}
				line, _ := bufio.NewReader(p.Stdout).ReadString('\n')
				<-p.Ended
				pid, err := strconv.Atoi(strings.TrimSpace(line))
				if err != nil {
					t.Errorf("the child wrote %q", line)
					return
				}
				again := time.NewTicker(10 * time.Millisecond)
				for ended := time.Now(); !gone(pid); <-again.C {
					if time.Since(ended) > time.Minute {
						t.Errorf("process %d is left", pid)
						kill(pid)
						break
					}
				}
				again.Stop()
			}
		})
	}
	all.Wait()
}
