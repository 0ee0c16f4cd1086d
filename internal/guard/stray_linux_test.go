package guard

import (
	"bufio"
	"os"
	"os/exec"
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
	var g Guard
	var all sync.WaitGroup
	for range children {
		all.Go(func() {
			for range rounds {
				mark := g.Mark()
				cmd := exec.Command("sh", "-c", "setsid sleep 300 >/dev/null & echo $!")
				cmd.Env = append(os.Environ(), mark)
				out, err := cmd.StdoutPipe()
				if err == nil {
					err = StartGroup(cmd)
				}
				if err != nil {
					t.Error(err)
					return
				}
				c := g.Add(cmd.Process, mark)
				line, _ := bufio.NewReader(out).ReadString('\n')
				_ = cmd.Wait()
				KillStrays(c)
				pid, err := strconv.Atoi(strings.TrimSpace(line))
				if err != nil {
					t.Errorf("the child wrote %q", line)
					return
				}
				again := time.NewTicker(10 * time.Millisecond)
				for ended := time.Now(); !gone(pid); <-again.C {
					if time.Since(ended) > 10*time.Second {
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
