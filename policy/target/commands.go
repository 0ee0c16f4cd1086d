package target

import (
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// argv completes the target of a command that is a list of words.
func argv(t Target, value []byte) Target {
	var words []string
	bad := false
	err := rawjson.Elements(value, func(v []byte) bool {
		word, ok := rawjson.String(v)
		bad = bad || !ok || strings.ContainsRune(word, 0)
		words = append(words, word)
		return len(words) < 10_000
	})
	t.Resolved = cut(quoted(words))
	t.Given = t.Resolved
	if err != nil || bad || len(words) == 0 || words[0] == "" {
		t.Fault = "is no list of words that begins with a program: send texts without NUL characters"
		return t
	}
	return program(t, words)
}

// quoted joins words so that no two lists give one text.
func quoted(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$`;|&<>(){}*?[]#~") {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// shellText completes the target of a command that is one text. A plain one is split at its spaces;
// one with anything that a shell gives a meaning may run any program.
func shellText(t Target, text string) Target {
	t.Resolved = t.Given
	words := strings.Fields(text)
	switch {
	case strings.ContainsRune(text, 0):
		t.Fault = "holds a NUL character, which no command can: send it without"
	case len(words) == 0:
		t.Fault = "is empty: send a command"
	case strings.ContainsAny(text, "\n\r'\"\\$`;|&<>(){}*?[]#~!^%"), strings.Contains(words[0], "="):
		t.Notes = append(slices.Clip(t.Notes), ShellText)
	default:
		t.Resolved = cut(strings.Join(words, " "))
		return program(t, words)
	}
	return t
}

// program sets the executable: its name, or its path as it is written. A relative path depends on
// the working directory, which is part of whatever is granted.
func program(t Target, words []string) Target {
	t.Executable = words[0]
	if RunsArguments(words[0]) {
		t.Notes = append(slices.Clip(t.Notes), Wrapper)
	}
	return t
}

// Runs sets the file that the command t executes: path, absolute and with every link followed. It
// keeps the name that t calls the file by, because some programs go by it: lsmod and insmod are one
// file.
func (t *Target) Runs(path string) {
	if called := lastName(t.Executable); called != lastName(path) {
		t.As = called
	}
	t.Executable = path
	if RunsArguments(path) && !t.Has(Wrapper) {
		t.Notes = append(slices.Clip(t.Notes), Wrapper)
	}
}

func lastName(program string) string { return program[strings.LastIndexAny(program, `/\`)+1:] }

// base is the name of a program without its directory, version and extension.
func base(program string) string {
	program = strings.TrimSuffix(strings.ToLower(lastName(program)), ".exe")
	return strings.TrimRight(program, "0123456789.-")
}

// RunsArguments reports whether the program at path runs other programs by its arguments. A grant
// for such a program would cover everything.
func RunsArguments(path string) bool {
	name := base(path)
	switch name {
	case "", "sh", "bash", "zsh", "dash", "ksh", "fish", "csh", "tcsh", "busybox", "cmd", "powershell", "pwsh", "env",
		"sudo", "doas", "su",
		"nohup", "nice", "ionice", "time", "timeout",
		"xargs", "find", "parallel", "watch", "strace", "ltrace", "gdb", "ssh", "docker",
		"podman", "kubectl", "nsenter", "chroot", "unshare", "setsid", "stdbuf", "script", "expect", "python", "perl",
		"ruby", "node",
		"deno", "bun", "php", "lua", "awk", "gawk", "osascript", "wscript", "cscript", "mshta", "rundll", "npx", "uvx",
		"pipx", "make",
		"git", "vim", "vi", "ed", "emacs", "tar", "rsync", "npm", "pnpm", "yarn", "go", "cargo",
		"ash", "toybox", "coreutils", "mawk", "nawk", "original-awk", "sed", "gsed", "nvim", "vimdiff", "view", "ex",
		"nano", "less", "more", "man",
		"pager", "tmux", "screen", "systemd-run", "machinectl", "pkexec", "runuser", "sg", "newgrp", "runcon",
		"setpriv", "capsh", "setarch",
		"linux", "i386", "x86_64", "taskset", "chrt", "choom", "prlimit", "flock", "logsave", "fakeroot", "proot",
		"bwrap", "firejail", "flatpak",
		"snap", "run-parts", "start-stop-daemon", "dbus-run-session", "xvfb-run", "ssh-agent", "sshpass", "scp", "sftp",
		"gpg-agent", "at", "batch",
		"crontab", "entr", "socat", "nc", "ncat", "valgrind", "perf", "bpftrace", "lldb", "java", "jshell", "groovy",
		"scala", "kotlin", "dotnet", "mono",
		"rscript", "r", "julia", "guile", "sbcl", "ghci", "ocaml", "elixir", "iex", "erl", "mix", "swift", "tclsh",
		"wish", "luajit", "pypy", "irb",
		"nodejs", "bunx", "wsl", "start", "gradle", "gradlew", "mvn", "mvnw", "ant", "bazel", "cmake", "ninja", "meson",
		"just", "task", "rake",
		"bundle", "gem", "pip", "uv", "poetry", "pipenv", "conda", "nix", "nix-shell", "brew", "corepack", "tox", "nox",
		"pytest", "hg", "svn",
		"sqlite", "psql", "mysql", "mariadb", "helm", "terraform", "ansible", "vagrant", "zip", "split", "ld.so",
		"direnv",
		"fd", "eval", "exec":
		return true
	}
	return strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl")
}
