package child

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

const (
	// downloadTime bounds the first start of a program that a runner may have to download.
	downloadTime = 10 * time.Minute

	// aloneTime bounds how long others wait for that start: the program may be there, and wait for a person to sign in.
	aloneTime = time.Minute
)

// firsts lets the first start of each package run alone: two downloads into one directory break each other.
type firsts struct{ of sync.Map } // *first by package

// first is that of one package.
type first struct {
	*Slots
	started atomic.Bool // a start has succeeded: all others may run at once
}

// Await waits until the server may be started, and returns how long that may take. The caller calls done when it has
// been started, or has not.
func (f *firsts) Await(ctx context.Context, cfg settings.Server) (within time.Duration, done func(started bool)) {
	within, done = cfg.Timeouts.Connect, func(bool) {}
	name := downloads(cfg)
	if name == "" {
		return within, done
	}
	entry, _ := f.of.LoadOrStore(name, &first{Slots: &Slots{make(chan struct{}, 1), aloneTime}})
	it := entry.(*first)
	free, ok := it.Take(ctx)
	if !ok {
		return within, done
	}
	if it.started.Load() {
		free()
		return within, done
	}
	return max(within, downloadTime), func(started bool) {
		if started {
			it.started.Store(true)
		}
		free()
	}
}

// downloads names what a runner downloads before it starts the server; "" where none does.
func downloads(cfg settings.Server) string {
	words := append([]string{cfg.Command}, cfg.Args...)
	if len(words) > 2 && strings.EqualFold(words[1], "/c") { // of cmd.exe
		words = words[2:]
	}
	switch name := programName(words[0]); name {
	case "docker", "podman":
		return strings.Join(words, " ")
	case "npx", "bunx", "uvx", "pipx":
		for i, word := range words[1:] {
			option, value, ok := strings.Cut(word, "=")
			switch {
			case !slices.Contains([]string{"-p", "--package", "--from", "--spec"}, option):
			case ok:
				return name + " " + value
			case i+2 < len(words):
				return name + " " + words[i+2]
			}
			if !strings.HasPrefix(word, "-") && word != "run" {
				return name + " " + word
			}
		}
	}
	return ""
}
