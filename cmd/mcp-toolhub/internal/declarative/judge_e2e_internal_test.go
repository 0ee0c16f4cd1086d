//go:build e2e && unix

package declarative

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// refusedTexts are texts for a shell in which {{x}} would be a program, or an option that names one.
func refusedTexts() []string {
	return []string{
		// A word behind words that are no command.
		`{{x}}`, `2>/dev/null {{x}}`, `</dev/null {{x}}`, `>out 2>&1 {{x}} a`, `X=1 {{x}}`, `X=1 2>/dev/null {{x}}`, `! {{x}}`, `( {{x}} )`, `{ {{x}}; }`, "ls\n{{x}}", `ls & {{x}}`,
		`ls && {{x}}`, `ls || {{x}}`, `ls | {{x}}`, `if {{x}}; then ls; fi`, `if ls; then {{x}}; else ls; fi`, `while {{x}}; do ls; done`, `for i in a; do {{x}}; done`,
		`case a in a) {{x}};; esac`, `case a in b) ;; (a) {{x}};; esac`, `f() { {{x}}; }; f`, `echo "$( {{x}} )"`, `ls; "" {{x}}; $EMPTY {{x}}`, `f() { "$1"; }; f {{x}}`, `f() { nice "$@"; }; f {{x}}`,
		"sh <<E\n{{x}}\nE", "cat <<E\n{{x}}\nE", "x={{x}}\nsh <<E\n$x\nE", `ls # {{x}}`, `ls '{{x}}'`, `ls "{{x}}"`, `ls a{{x}}`, `ls {{x}}{{x}}`, "ls `echo {{x}}`",
		// Wrappers.
		`timeout 5 {{x}}`, `timeout -k 1 5 {{x}}`, `timeout --signal=KILL 5 {{x}}`, `/usr/bin/timeout 5 {{x}}`, `"timeout" 5 {{x}}`, `\timeout 5 {{x}}`, `ti'me'out 5 {{x}}`,
		`timeout -- 5 {{x}}`, `timeout -x 5 {{x}}`, `nice {{x}}`, `nice -n 5 {{x}}`, `nice -5 {{x}}`, `nice --adjustment=5 {{x}}`, `nohup {{x}}`, `setsid {{x}}`, `setsid -w {{x}}`,
		`stdbuf -o0 {{x}}`, `stdbuf --output=L {{x}}`, `ionice -c 3 {{x}}`, `time {{x}}`, `time -p {{x}}`, `env {{x}}`, `env - {{x}}`, `env -i {{x}}`, `env -u A {{x}}`, `env A=1 {{x}}`,
		`env -i A=1 nice timeout 5 {{x}}`, `env -S {{x}}`, `env --split-string={{x}}`, `env -- {{x}}`, `exec {{x}}`, `exec -a n {{x}}`, `command {{x}}`, `command -p {{x}}`, `builtin {{x}}`,
		`sudo -u nobody {{x}}`, `sudo {{x}}`, `sudo -n -- {{x}}`, `doas {{x}}`, `busybox {{x}}`, `busybox sh -c {{x}}`, `chroot . {{x}}`, `flock f {{x}}`, `flock f -c {{x}}`,
		`strace {{x}}`, `watch {{x}}`, `su -c {{x}}`, `ssh host {{x}}`, `script -c {{x}}`, `parallel {{x}}`, `unshare {{x}}`, `taskset 1 {{x}}`, `setarch x86_64 {{x}}`, `gdb -ex {{x}}`,
		`coproc {{x}}`, `select {{x}} in a; do ls; done`, `systemd-run {{x}}`, `run-parts {{x}}`, `npx {{x}}`, `/lib64/ld-linux-x86-64.so.2 {{x}}`,
		// xargs and find.
		`echo a | xargs {{x}}`, `xargs -I@ {{x}}`, `echo a | xargs -I @ {{x}} @`, `echo {{x}} | xargs -I@ @`, `echo {{x}} | xargs -I@ sh -c @`, `echo {{x}} | xargs -i sh -c '{}'`,
		`echo {{x}} | xargs -I@ sh -c 'ls @'`, `echo {{x}} | xargs sh -c`, `echo {{x}} | xargs sh`, `echo {{x}} | xargs env`, `echo {{x}} | xargs -n 1 timeout 5`, `echo {{x}} | xargs find .`,
		`echo a | xargs --replace {{x}}`, `echo a | xargs -l {{x}}`, `echo {{x}} | xargs -l nice`, `xargs -a {{x}} nice`, `echo {{x}} | xargs -0 -r -P 1 nohup`,
		`find . -exec {{x}} \;`, `find . -exec {{x}} {} +`, `find . -exec sh -c {{x}} \;`, `find . -exec sh -c 'ls {}' {{x}} \;`, `find . -execdir nice {{x}} \;`, `find . -ok {{x}} ';'`,
		`find . -name a {{x}}`, `find . -- {{x}} {{x}} ';'`, `find . -fprintf {{x}} a`,
		// Shells and interpreters.
		`sh -c {{x}}`, `sh {{x}}`, `sh -- {{x}}`, `sh -e -c {{x}}`, `sh -o errexit -c {{x}}`, `bash --norc -c {{x}}`, `bash -lc {{x}}`, `bash --rcfile {{x}} -i`, `sh -c '$1' sh {{x}}`,
		`sh -c '"$1"' sh {{x}}`, `sh -c '"$@"' sh {{x}}`, `sh -c 'eval "$1"' sh {{x}}`, `sh -c 'exec "$0"' {{x}}`, `sh -c 'x=$1; "$x"' sh {{x}}`, `sh -c "sh -c '\$1' sh \"\$1\"" sh {{x}}`,
		`sh -c 'find . "$1"' -- {{x}}`, `sh -c 'ls | xargs "$1"' sh {{x}}`, `sh -s {{x}}`, `echo {{x}} | sh`, `echo {{x}} | sh -`, `echo {{x}} | sh -s a`, `echo {{x}} | bash`, `echo {{x}} | sudo sh`,
		`echo {{x}} | timeout 5 sh`, `echo {{x}} | env -i bash`, `sh < {{x}}`, `sh -c "$X" {{x}}`, `printf %s {{x}} > s; sh s`, `printf %s {{x}} > s.sh; chmod +x s.sh; ./s.sh`,
		`awk {{x}}`, `awk -f {{x}}`, `awk -- {{x}}`, `awk 'BEGIN{system(ARGV[1])}' {{x}}`, `awk 'BEGIN{ARGV[1] | getline}' {{x}}`, `awk -v c={{x}} 'BEGIN{print | c}'`, `sed {{x}}`, `sed -e {{x}} f`,
		`sed -n {{x}} f`, `sed s/a/b/e {{x}}`, `echo {{x}} | sed 's/.*/&/e'`, `sed --expression={{x}} f`, `perl -e {{x}}`, `perl -e 'exec @ARGV' {{x}}`, `echo {{x}} | perl`, `python3 -c {{x}}`,
		`python3 {{x}}`, `python3.12 {{x}}`, `python3 -c 'import os,sys;os.system(sys.argv[1])' {{x}}`, `echo {{x}} | python3 -`, `ruby -e {{x}}`, `node -e {{x}}`, `php -r {{x}}`, `lua {{x}}`,
		`echo {{x}} | dc`, `echo {{x}} | m4`, `vim -c {{x}}`, `echo {{x}} | ssh host sh`, `sqlite3 db {{x}}`, `psql -c {{x}}`,
		// Builtins that read their arguments once more.
		`eval {{x}}`, `eval "ls" {{x}}`, `command eval {{x}}`, `. {{x}}`, `source {{x}}`, `trap {{x}} EXIT`, `alias ls={{x}}`, `set -- {{x}}; "$@"`, `read {{x}}`, `unset {{x}}`, `printf -v {{x}} a`,
		`hash -p {{x}} ls`, `enable -f {{x}} ls`, `cd {{x}} && ./run`, `export X={{x}}`, `let {{x}}`, `[ -v {{x}} ]`, `[[ {{x}} -eq 1 ]]`, `echo $(( {{x}} ))`, `x={{x}}; echo $((x))`,
		// Variables.
		`X={{x}}; $X`, `x={{x}}; $x`, `x={{x}}; "$x"`, `x={{x}}; "${x}" a`, `x={{x}}; y=$x; $y`, `x={{x}}; y="a$x"; nice "$y"`, `x={{x}}; timeout 5 "$x"`, `x={{x}}; sh -c "$x"`, `x={{x}}; sh -c "ls $x"`,
		`for c in {{x}}; do $c; done`, `for c in {{x}}; do "$c" a; done`, `for PATH in {{x}}; do ls; done`, `echo {{x}} | while read -r l; do $l; done`, `echo {{x}} | while read l; do "$l"; done`,
		`echo {{x}} | { read a b; "$a"; }`, `x=$(echo {{x}}); $x`, `$(echo {{x}})`, `"$(echo {{x}})" a`, `x=$(echo {{x}}); find . "$x"`, `x={{x}}; find . "${x#a}"`, `x={{x}}; ls $x`, `x={{x}}; find . $x`,
		`PATH={{x}} ls`, `PATH={{x}}; ls`, `LD_PRELOAD={{x}} ls`, `ENV={{x}} sh -i -c ls`, `BASH_ENV={{x}} bash -c ls`, `env PATH={{x}} ls`, `env LD_PRELOAD={{x}} ls`, `PAGER={{x}} man ls`,
		`GIT_SSH_COMMAND={{x}} git fetch`, `IFS={{x}}; ls`, `t=timeout; $t 5 {{x}}`, `$(echo timeout) 5 {{x}}`, `x={{x}}; export x; ls`, `: "${x:={{x}}}"; $x`, `x={{x}}; eval ls`, `"$SHELL" -c {{x}}`,
		`x={{x}}; set -a; sh -c 'find . $x'`, `timeout $EMPTY 5 nice {{x}}`, `timeout -k $EMPTY 5 nice {{x}}`, `f() { timeout "$@" 5 nice {{x}}; }; f`, `nice -n{1,} 5 nice {{x}}`,
		`nice() { :; }; env nice {{x}}`, `nice {{x}}; nice() { :; }`, `bash -oo errexit errexit {{x}}`, `find . -exec ls {{x}} -o -exec {{x}} \;`, `read; echo $((REPLY)) {{x}}`,
		`echo {{x}} | tee run.sh; sh run.sh`, `printf %s {{x}} | dd of=./run.sh; ./run.sh`, `echo {{x}} > {{x}}; sh own.sh`, `cp {{x}} own.sh; ./own.sh`, `exit {{x}}`, `m4 own.m4 {{x}}`,
		`kubectl get pods --kubeconfig={{x}}`, `coreutils --coreutils-prog=nice {{x}}`, `x["a"]={{x}}`, `x[{{x}}]=1`, `echo <({{x}})`, `cat <<< {{x}}`, `echo ${x[{{x}}]}`, "nice\r {{x}}",
		// Options that name a program, and values that are one by another way.
		`git {{x}}`, `git -c {{x}} log`, `git -c alias.l={{x}} l`, `git --exec-path={{x}} log`, `git fetch --upload-pack={{x}}`, `git grep -O {{x}} a`, `git grep --open-files-in-pager={{x}} a`,
		`git bisect run {{x}}`, `git submodule foreach {{x}}`, `git rebase --exec {{x}}`, `git difftool -x {{x}}`, `git config core.pager {{x}}`, `tar -cf a --checkpoint-action={{x}} b`,
		`tar -I {{x}} -xf a`, `tar --use-compress-program={{x}} -xf a`, `tar --use-comp={{x}} -xf a`, `tar cIf {{x}} a b`, `tar -xf a --to-command={{x}}`, `rsync -e {{x}} a b`, `rsync --rsh={{x}} a b`,
		`sort --compress-program={{x}} f`, `split --filter={{x}} f`, `zip -TT {{x}} a b`, `wget --use-askpass={{x}} a`, `man -P {{x}} ls`, `less {{x}}`, `make {{x}}`, `make -f {{x}}`, `make SHELL={{x}}`,
		`docker run {{x}}`, `npm run {{x}}`, `pip install {{x}}`, `go run {{x}}`, `tool --shell={{x}}`, `tool --pager {{x}}`, `tool --exec-command={{x}}`, `xdg-open {{x}}`, `crontab {{x}}`,
	}
}

// admittedTexts are texts in which it is data.
func admittedTexts() []string {
	return []string{
		`f() { ls "$1"; }; f {{x}}`, `set -e; ls {{x}}`, "x={{x}}\ncat <<E\na $x\nE", `echo {{x}}`, `printf '%s\n' {{x}}`, `printf %s {{x}} | cat`, `grep -c {{x}} f`, `grep -e {{x}} f | wc -l`, `grep -- {{x}} f`, `ls {{x}}`, `cat < {{x}}`, `cat f > {{x}}`, `cat 2>&1 >&2 {{x}}`,
		`for i in {{x}}; do echo "$i"; done`, `x={{x}}; echo "$x" "${#x}"`, `x={{x}}; y="a $x"; printf '%s' "$y"`, `case {{x}} in a) echo;; esac`, `if test -n {{x}}; then echo {{x}}; fi`,
		`[ {{x}} = a ] && echo`, `x=$(grep -c {{x}} f); printf '%s' "$x"`, `echo "$(printf %s {{x}})"`, `timeout 5 ls {{x}}`, `timeout {{n}} ls`, `nice -n {{n}} ls {{x}}`, `env -i A=1 ls {{x}}`,
		`nohup ls {{x}}`, `command ls {{x}}`, `exec ls {{x}}`, `find . -name {{x}}`, `find {{x}} -type f`, `find . -name {{x}} -exec ls -l {} +`, `find . -exec grep -l {{x}} {} +`,
		`grep -l {{x}} f | xargs ls`, `grep -l {{x}} f | xargs -I@ ls @`, `echo {{x}} | xargs printf '%s'`, `echo {{x}} | while read -r l; do echo "$l"; done`, `sh -c 'echo "$1"' sh {{x}}`,
		`sh -c 'for a in "$@"; do printf "%s" "$a"; done' sh -- {{x}}`, `sh ./own.sh {{x}}`, `./own.sh {{x}}`, `"$HOME"/own.sh {{x}}`, `python3 own.py {{x}}`, `own-tool --name={{x}} -c {{x}} {{x}}`,
		`awk -v v={{x}} '{print v, $1}' f`, `awk '{print $1}' {{x}}`, `ls {{x}} | sed 's/a/b/g'`, `sed -n 1p {{x}}`, `echo {{x}} | sed 's|a|b|'`, `git log -n {{n}} --oneline --grep={{x}}`, `git commit -m {{x}}`,
		`git -C . log {{x}}`, `git grep -e {{x}}`, `tar -cf {{x}} f`, `tar -tf {{x}}`, `sort -k {{n}} {{x}}`, `jq {{x}} f`, `jq --arg v {{x}} -n '$v'`, `own-tool -- {{x}}`, `head -n {{n}} f`, `ls | grep {{x}} | sort | uniq -c`,
		`f() { echo a; }; f; ls {{x}}`, `trap_me {{x}}`, `ls {{x}} || true`, `{ ls {{x}}; } 2>/dev/null`, `( ls {{x}} )`, "# a comment\nls {{x}} # another", "ls \\\n  {{x}}", `echo {{x}} 'it''s' "a \"b\""`,
	}
}

// TestNoValueIsRun: texts in which a value would be a program are refused, and those that are admitted run no value, whatever
// it is: that is tried with every shell that is here.
func TestNoValueIsRun(t *testing.T) {
	t.Parallel()
	for _, text := range refusedTexts() {
		if d, faults := declareText(t, text); d != nil {
			t.Errorf("admitted: %s", text)
		} else if !strings.Contains(faults[0], ": command: ") {
			t.Errorf("%s: %v", text, faults)
		}
	}
	a := newArena(t)
	for _, text := range admittedTexts() {
		d, faults := declareText(t, text)
		if d == nil {
			t.Errorf("refused: %s: %v", text, faults)
			continue
		}
		for _, hit := range a.run(t, d, a.values()) {
			t.Errorf("%s: %s is run", text, hit)
		}
	}
}

// TestNoArgumentIsRun is the same for values in args, of programs and of texts.
func TestNoArgumentIsRun(t *testing.T) {
	t.Parallel()
	type tool struct {
		kind, command string
		args          []string
		admitted      bool
	}
	a := newArena(t)
	for _, c := range []tool{
		{"exec", "timeout", []string{"5", "{{x}}"}, false}, {"exec", "timeout", []string{"5", "ls", "{{x}}"}, true}, {"exec", "/usr/bin/env", []string{"-i", "{{x}}"}, false},
		{"exec", "env", []string{"A={{x}}", "ls"}, false}, {"exec", "xargs", []string{"{{x}}"}, false}, {"exec", "xargs", []string{"-I@", "sh", "-c", "@"}, false}, {"exec", "xargs", nil, true},
		{"exec", "xargs", []string{"nice"}, false}, {"exec", "sh", nil, false}, {"exec", "sh", []string{"-s"}, false}, {"exec", "sh", []string{"-c", "{{x}}"}, false}, {"exec", "perl", nil, false},
		{"exec", "sh", []string{"-c", "$1", "sh", "{{x}}"}, false}, {"exec", "sh", []string{"-c", `echo "$1"`, "sh", "{{x}}"}, true}, {"exec", "sh", []string{"-c", `nice "$@"`, "sh", "{{x}}"}, false},
		{"exec", "sh", []string{"own.sh", "{{x}}"}, true}, {"exec", "find", []string{".", "-exec", "{{x}}", ";"}, false}, {"exec", "find", []string{".", "-name", "{{x}}"}, true},
		{"exec", "find", []string{"--", "{{x}}"}, false}, {"exec", "git", []string{"-c", "{{x}}", "log"}, false}, {"exec", "git", []string{"log", "--grep={{x}}"}, true},
		{"exec", "tar", []string{"--to-command={{x}}", "-xf", "a"}, false}, {"exec", "awk", []string{"{{x}}"}, false}, {"exec", "awk", []string{"{print}", "{{x}}"}, true},
		{"exec", "python3", []string{"-c", "import sys; print(sys.stdin.read())"}, true}, {"exec", "python3", []string{"-c", "print(1)", "{{x}}"}, false}, {"exec", "python3", []string{"own.py", "{{x}}"}, true},
		{"exec", "make", []string{"{{x}}"}, false}, {"exec", "make", []string{"all"}, true}, {"exec", "cat", nil, true}, {"exec", "./own.sh", []string{"{{x}}", "--shells", "{{x}}"}, false},
		{"exec", "./own.sh", []string{"{{x}}", "--name", "{{x}}"}, true},
		{"shell", `echo "$1"`, []string{"{{x}}"}, true}, {"shell", `"$1"`, []string{"{{x}}"}, false}, {"shell", `$1`, []string{"{{x}}"}, false}, {"shell", `ls $1`, []string{"{{x}}"}, false},
		{"shell", `f() { ls "$1"; }; f "$@"`, []string{"{{x}}"}, true}, {"shell", `f() { "$1"; }; f "$@"`, []string{"{{x}}"}, false}, {"shell", `for a; do $a; done`, []string{"{{x}}"}, false},
		{"shell", `for a do ls "$a"; done`, []string{"{{x}}"}, true}, {"shell", `x=${1#a}; find . "$x"`, []string{"{{x}}"}, false}, {"shell", `eval "$1"`, []string{"{{x}}"}, false},
		{"shell", "sh <<E\n$1\nE", []string{"{{x}}"}, false}, {"shell", "cat <<E\n$1\nE", []string{"{{x}}"}, true}, {"shell", `nice "$@"`, []string{"{{x}}"}, false},
		{"shell", `echo ${2:-$1}`, []string{"{{x}}"}, false}, {"shell", `set -- a; ls "$@"`, []string{"{{x}}"}, true},
		{"shell", `sh`, nil, false}, {"shell", `cat | sh`, nil, false}, {"shell", `jq -r .x | bash`, nil, false}, {"shell", `xargs -I@ sh -c @`, nil, false}, {"shell", `cat`, nil, true},
		{"shell", `python3 -c 'import json,sys; print(json.load(sys.stdin))'`, nil, true}, {"shell", `a="$(cat)"; echo "$a" | grep -c b`, nil, true}, {"shell", `read -r l; $l`, nil, false},
	} {
		d, faults := declare(t, map[string]any{"command_type": c.kind, "command": c.command, "args": append([]string{}, c.args...)})
		if (d != nil) != c.admitted {
			t.Errorf("%s %s %q: admitted: %t %v", c.kind, c.command, c.args, d != nil, faults)
		}
		if d == nil || c.command == "make" || c.command == "git" {
			continue
		}
		for _, hit := range a.run(t, d, a.values()[:5]) {
			t.Errorf("%s %s %q: %s is run", c.kind, c.command, c.args, hit)
		}
	}
}

// TestRandomTextsRunNoValue: no text that is put together at random and admitted runs the value.
func TestRandomTextsRunNoValue(t *testing.T) {
	t.Parallel()
	a, random, admitted := newArena(t), rand.New(rand.NewPCG(1, 2)), 0
	for range 20_000 {
		data := make([]byte, 1+random.IntN(9))
		for i := range data {
			data[i] = byte(random.IntN(256))
		}
		if text := textOf(data); strings.Contains(text, "{{x}}") && tryText(t, a, text) {
			admitted++
		}
	}
	if admitted < 20 {
		t.Errorf("only %d texts were admitted, which shows nothing", admitted)
	}
}
