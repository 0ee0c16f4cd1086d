package declarative

import (
	"strings"
	"sync"
)

// programRule says how a program takes its arguments. The zero value is for a program that is not known: a script of the
// person's own may be one, and takes values as arguments.
type programRule struct {
	shell    bool      // runs a text or a file of the shell's language
	language bool      // runs a text or a file of another language
	wraps    *wrapping // starts the program that its arguments name
	starts   bool      // starts other programs in ways that are not followed
	names    bool      // takes its arguments for names or commands of the shell
	harmless bool      // starts nothing, whatever its arguments are
	leading  bool      // takes nothing behind its first operand for an option
	never    string    // why it is refused at all

	subcommands []string // those whose arguments may be values; nil: any
	short       string   // letters of options that name a program
	clusters    bool     // these may stand in the first word without a dash
	long        []string // options that name a program, besides those that say so by their name
}

// wrapping says how a wrapper's arguments lead to the program that it starts.
type wrapping struct {
	flags    string   // letters of options without an argument
	letters  string   // letters of options with an argument
	attached string   // letters of options whose argument may only stand in the same word
	options  []string // long options; those with an argument end in "="
	operands int      // operands before the program
	assigns  bool     // NAME=VALUE may stand before the program
	plain    bool     // its own options and operands are numbers and the like: values may stand there
	input    bool     // it gives the program words that it reads
	replace  string   // letters of the options that name a text to replace by such words
}

// option reports whether w knows the option, and whether the word behind it is its argument.
func (w *wrapping) option(text string) (takes, ok bool) {
	if name, isLong := strings.CutPrefix(text, "--"); isLong {
		name, _, hasArgument := strings.Cut(name, "=")
		for _, known := range w.options {
			plain, argument := strings.CutSuffix(known, "=")
			if plain == name {
				return argument && !hasArgument, argument || !hasArgument || w.input
			}
		}
		return false, false
	}
	for i, letter := range text[1:] {
		switch {
		case strings.ContainsRune(w.letters, letter):
			return i+2 == len(text), true
		case strings.ContainsRune(w.attached, letter):
			return false, true
		case w.plain && letter >= '0' && letter <= '9': // nice -5
		case !strings.ContainsRune(w.flags, letter):
			return false, false
		}
	}
	return false, true
}

// replaces returns the text that xargs replaces by what it reads, ok where the option says so.
func (w *wrapping) replaces(text string) (string, bool) {
	if rest, ok := strings.CutPrefix(text, "--replace"); ok && w.replace != "" {
		if rest == "" {
			return "{}", true
		}
		return strings.TrimPrefix(rest, "="), true
	}
	for i, letter := range text {
		if i == 0 || text[1] == '-' || !strings.ContainsRune(w.replace, letter) {
			continue
		}
		if letter == 'i' && i+1 == len(text) {
			return "{}", true
		}
		return text[i+1:], true
	}
	return "", false
}

// ruleOf returns what is known of a program.
func ruleOf(name string) (rule programRule, ok bool) {
	if strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") {
		return programRule{starts: true}, true
	}
	rule, ok = programs()[name]
	return rule, ok
}

// programs returns the programs of which something is known, by name.
var programs = sync.OnceValue(func() map[string]programRule {
	all := make(map[string]programRule)
	add := func(rule programRule, names string) {
		for name := range strings.FieldsSeq(names) {
			all[name] = rule
		}
	}
	add(programRule{shell: true}, "sh bash dash ash zsh ksh mksh rbash yash")
	add(programRule{language: true}, `awk gawk mawk nawk sed gsed python pypy perl ruby node nodejs deno bun php lua luajit tclsh wish expect rscript r julia guile
		sbcl ghci ocaml elixir groovy scala kotlin osascript pwsh powershell fish csh tcsh xonsh nu elvish java jshell`)
	add(programRule{starts: true}, `strace ltrace gdb lldb watch ssh su runuser sg newgrp script parallel tmux screen nsenter unshare systemd-run machinectl pkexec
		runcon setpriv capsh setarch linux i386 i x86_64 x86_ taskset chrt choom prlimit logsave fakeroot proot bwrap firejail flatpak snap run-parts start-stop-daemon
		dbus-run-session xvfb-run ssh-agent sshpass scp sftp at batch crontab entr socat nc ncat netcat valgrind perf bpftrace dotnet mono wine cmd wsl start
		npx uvx pipx bunx corepack vim vi nvim ex ed view emacs nano less more man pager psql mysql mariadb sqlite sqlplus ld.so direnv chroot flock cargo-run
		xdg-open open gio mail mailx sendmail inotifywait rlwrap unbuffer dtach nq tsp cron anacron telnet busctl bc dc m4 gnuplot octave coreutils toybox ansible ansible-playbook vagrant erl`)
	add(programRule{names: true}, `unset export readonly local typeset declare getopts hash enable complete compgen bind fc history mapfile readarray cd pushd popd
		chdir set shift exit return read wait jobs umask ulimit let`)
	add(programRule{never: "reads a text as commands once more"}, "eval . source trap alias")
	add(programRule{never: "is a word of some shells that changes what the others mean"}, "coproc select function [[ ((")
	add(programRule{harmless: true}, `echo cat head tail wc cut tr uniq comm paste nl tac rev basename dirname realpath readlink stat ls mkdir rmdir touch cp mv ln chmod
		date seq sha256sum shasum sha1sum md5sum md sha sum b2sum base64 base od hexdump xxd jq grep egrep fgrep diff cmp true false sleep : rm kill`)
	add(programRule{subcommands: []string{"log", "show", "diff", "status", "blame", "shortlog", "rev-parse", "rev-list", "ls-files", "ls-tree", "cat-file", "branch",
		"tag", "commit", "add", "grep", "checkout", "switch", "restore", "merge-base", "describe", "stash", "reset"}, short: "O", long: []string{"open-files-in-pager",
		"ext-diff", "textconv", "upload-pack", "receive-pack"}}, "git")
	add(programRule{subcommands: []string{"get", "describe", "logs", "top", "explain", "version"}, long: []string{"kubeconfig"}}, "kubectl")
	add(programRule{subcommands: []string{"ps", "images", "inspect", "logs", "top", "stats", "version"}}, "docker podman")
	add(programRule{subcommands: []string{"list", "doc", "version"}, long: []string{"toolexec", "vettool"}}, "go")
	add(programRule{subcommands: []string{}}, `make gmake cmake ninja meson just task rake ant gradle gradlew mvn mvnw bazel npm pnpm yarn cargo pip uv poetry pipenv conda
		nix nix-shell nix-env brew apt apt-get dnf yum pacman apk dpkg rpm gem bundle composer tox nox pytest hg svn helm terraform mix swift iex rsync-ssl`)
	add(programRule{short: "IF", clusters: true, long: []string{"use-compress-program", "to-command", "checkpoint-action", "rsh-command", "info-script", "new-volume-script"}}, "tar bsdtar gtar")
	add(programRule{short: "e", long: []string{"rsh", "rsync-path"}}, "rsync")
	add(programRule{long: []string{"compress-program"}}, "sort")
	add(programRule{long: []string{"filter"}}, "split")
	add(programRule{short: "T", long: []string{"unzip-command"}}, "zip")
	add(programRule{short: "e", long: []string{"execute", "use-askpass", "config"}}, "wget")
	add(programRule{short: "K", long: []string{"config"}}, "curl")
	add(programRule{short: "v", leading: true}, "printf")
	add(programRule{short: "v"}, "test [")

	wrap := func(w wrapping, names string) { add(programRule{wraps: &w}, names) }
	wrap(wrapping{flags: "i0v", letters: "uC", options: []string{"ignore-environment", "null", "debug", "unset=", "chdir="}, assigns: true}, "env")
	wrap(wrapping{flags: "fpv", letters: "ks", options: []string{"foreground", "preserve-status", "verbose", "kill-after=", "signal="}, operands: 1, plain: true}, "timeout gtimeout")
	wrap(wrapping{letters: "n", options: []string{"adjustment="}, plain: true}, "nice")
	wrap(wrapping{flags: "t", letters: "cnpPu", options: []string{"ignore", "class=", "classdata="}, plain: true}, "ionice")
	wrap(wrapping{letters: "ioe", options: []string{"input=", "output=", "error="}, plain: true}, "stdbuf")
	wrap(wrapping{flags: "apvlqV", letters: "fo", options: []string{"append", "portability", "verbose", "format=", "output="}}, "time")
	wrap(wrapping{flags: "cfw", options: []string{"ctty", "fork", "wait"}}, "setsid")
	wrap(wrapping{}, "nohup builtin busybox nocorrect noglob")
	wrap(wrapping{flags: "pvV"}, "command")
	wrap(wrapping{flags: "cl", letters: "a"}, "exec")
	wrap(wrapping{flags: "AbEHnkPS", letters: "CDghpRrTtUu", options: []string{"non-interactive", "preserve-env", "set-home", "user=", "group="}, assigns: true}, "sudo")
	wrap(wrapping{flags: "n", letters: "u"}, "doas")
	wrap(wrapping{flags: "0oprtx", letters: "adEILnPsRSJ", attached: "eil", options: []string{"null", "no-run-if-empty", "verbose", "exit", "open-tty", "interactive", "arg-file=",
		"delimiter=", "eof", "replace", "max-lines", "max-args=", "max-procs=", "max-chars=", "process-slot-var="}, input: true, replace: "IiJ"}, "xargs gxargs")
	return all
})
