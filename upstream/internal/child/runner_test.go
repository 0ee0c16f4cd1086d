package child

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

// TestFirstsRunAlone: of one package one start runs at a time until one has succeeded, and may take long; other packages wait for
// none of them. A start that waits for a person does not hold up the others for ever.
func TestFirstsRunAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const takes = 20 * time.Second
		var f firsts
		begin := time.Now()
		var starting sync.WaitGroup
		start := func(pkg string, takes time.Duration, succeeds bool, wantBegin, wantWithin time.Duration) {
			time.Sleep(time.Millisecond) // one after the other
			starting.Go(func() {
				within, done := f.Await(t.Context(), settings.Server{Command: "npx", Args: []string{"-y", pkg},
					Timeouts: settings.Timeouts{Connect: takes}})
				if at := time.Since(begin).Truncate(time.Second); at != wantBegin || within != wantWithin {
					t.Errorf("%s began after %s, within %s, want %s and %s", pkg, at, within, wantBegin, wantWithin)
				}
				time.Sleep(takes)
				done(succeeds)
			})
		}
		start("a", takes, false, 0, downloadTime)
		start("a", takes, true, takes, downloadTime)
		start("a", takes, true, 2*takes, takes)
		start("a", takes, true, 2*takes, takes)
		start("b", time.Hour, true, 0, time.Hour)
		start("b", takes, true, aloneTime, downloadTime)
		starting.Wait()
	})
}

func TestDownloads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want, command string
		args          []string
	}{
		{"npx a@1", "npx", []string{"-y", "a@1", "/dir"}},
		{"npx a@1", `C:\nodejs\npx.cmd`, []string{"-y", "a@1"}},
		{"npx a@1", "cmd", []string{"/c", "npx", "-y", "a@1"}},
		{"npx a", "/usr/bin/npx", []string{"--package", "a", "b"}},
		{"npx a", "npx", []string{"--package=a", "b"}},
		{"uvx a[x]", "uvx", []string{"--from", "a[x]", "b"}},
		{"pipx a", "pipx", []string{"run", "a"}},
		{"docker run -i a", "docker", []string{"run", "-i", "a"}},
		{"", "npx", nil},
		{"", "node", []string{"a.js"}},
	} {
		if got := downloads(settings.Server{Command: c.command, Args: c.args}); got != c.want && (c.command != `C:\nodejs\npx.cmd` || got != "") {
			t.Errorf("%s %q downloads %q, want %q", c.command, c.args, got, c.want)
		}
	}
}

// TestContainer: the words of a client of Docker or Podman, as one line, with NEW for a name of the hub's, and how its container is ended.
func TestContainer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, want, kill string }{
		{"docker run -i --rm a", "run --name NEW -i --rm a", "kill NEW"},
		{"podman run -itv /a:/b -e A --rm -p8:8 a --name x", "run --name NEW -itv /a:/b -e A --rm -p8:8 a --name x", "kill NEW"},
		{"docker run --name x -i a", "run --name x -i a", "kill x"},
		{"/usr/bin/docker run -i -e A=1 --name=x a", "run -i -e A=1 --name=x a", "kill x"},
		{"docker --context far container run -i a", "--context far container run --name NEW -i a", "--context far container kill NEW"},
		{"docker run -i -v", "run --name NEW -i -v", "kill NEW"},
		{"docker exec -i a run", "exec -i a run", ""},
		{"docker compose run a", "compose run a", ""},
		{"docker", "", ""},
		{"npx run a", "run a", ""},
	} {
		words := strings.Fields(c.line)
		args, kill := container(settings.Server{Command: words[0], Args: words[1:]})
		name := "NEW"
		if len(kill) > 0 {
			name = kill[len(kill)-1]
		}
		show := func(words []string) string {
			line := strings.Join(words, " ")
			if strings.HasPrefix(name, "mcp-toolhub-") {
				line = strings.ReplaceAll(line, name, "NEW")
			}
			return line
		}
		if show(args) != c.want || show(kill) != c.kill {
			t.Errorf("%s: %q and %q, want %q and %q", c.line, show(args), show(kill), c.want, c.kill)
		}
	}
}
