package child

import (
	"crypto/rand"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

// container returns the arguments of a server, and those with which its program kills the container that it runs; nil
// where it runs none. A container belongs to the daemon of Docker or Podman: it outlives the program, which is only a
// client. So it gets a name, unless the entry gives it one.
func container(cfg settings.Server) (args, kill []string) {
	args = cfg.Args
	if name := programName(cfg.Command); name != "docker" && name != "podman" {
		return args, nil
	}
	run := countOptions(args)
	if run < len(args) && args[run] == "container" {
		run++
	}
	if run >= len(args) || args[run] != "run" {
		return args, nil
	}
	options, name := args[run+1:], ""
	options = options[:countOptions(options)]
	for i, word := range options {
		if value, ok := strings.CutPrefix(word, "--name="); ok {
			name = value
		} else if word == "--name" && i+1 < len(options) {
			name = options[i+1]
		}
	}
	kill = slices.Concat(args[:run], []string{"kill", name})
	if name == "" {
		kill[len(kill)-1] = "mcp-toolhub-" + strings.ToLower(rand.Text())
		args = slices.Insert(slices.Clone(args), run+1, "--name", kill[len(kill)-1])
	}
	return args, kill
}

// countOptions returns how many words there are before the first one that is no option, nor the value of one.
func countOptions(words []string) int {
	// that have no value
	long := []string{"debug", "detach", "disable-content-trust", "help", "init", "interactive", "no-healthcheck",
		"no-hosts", "oom-kill-disable", "privileged", "publish-all", "quiet", "read-only", "remote", "replace", "rm",
		"rmi", "sig-proxy", "tls", "tlsverify", "tty"}
	const short = "DPdiqrt"
	i := 0
	for ; i < len(words) && strings.HasPrefix(words[i], "-"); i++ {
		name, isLong := strings.CutPrefix(words[i], "--")
		switch {
		case !isLong && len(strings.TrimLeft(name[1:], short)) == 1, // -e, -itv
			isLong && !strings.Contains(name, "=") && !slices.Contains(long, name):
			i++
		}
	}
	return min(i, len(words))
}
