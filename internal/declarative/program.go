package declarative

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// What is run is the person's choice, who declares the tool, and not that of whoever calls it: no value of a call stands where
// a program is named, or where a shell that is started takes its text from.

const (
	noProgram = "%s stands where a program does: name the program, and let the value be one of its arguments"
	noScript  = `a shell would take %s for its text: write that yourself, and give the value behind it, where it is "$1"`
)

// caseArm is a text in which a closing bracket may stand before a command.
var caseArm = regexp.MustCompile(`(^|[\s;&|({])case\s`)

// assignment is a word that sets a variable for the command behind it.
var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// isShell reports whether the program is one that reads its first operand, or that of its option -c, as a program.
func isShell(program string) bool {
	switch path.Base(program) {
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "csh", "tcsh", "fish":
		return true
	}
	return false
}

// runsNext reports whether the word behind this one is a program: words of the shell's language, and programs that start others.
func runsNext(word string) bool {
	switch path.Base(word) {
	case "{", "!", "then", "do", "else", "elif", "if", "while", "until", "time", "exec", "command", "builtin", "env", "nohup", "sudo", "doas",
		"setsid", "xargs":
		return true
	}
	return false
}

// takesText reports whether the word behind these words of a command is what a shell takes its text from: its first operand.
// Its options are told by the dash; one with an argument of its own is none that a text behind it would be looked for.
func takesText(words []string) bool {
	at := slices.IndexFunc(words, isShell)
	return at >= 0 && !slices.ContainsFunc(words[at+1:], func(w string) bool { return !strings.HasPrefix(w, "-") })
}

// namesProgram says what is wrong with a template behind this beginning of a shell's text; "" where nothing is. The beginning
// is told by its words, which quotes may make one of several: that is refused sooner, and never later.
func namesProgram(before string) string {
	if strings.HasSuffix(before, "=") {
		return ""
	}
	before = strings.TrimRight(before, " \t")
	for _, redirection := range []string{">", "<", ">&", "<&", ">|"} {
		if strings.HasSuffix(before, redirection) {
			return ""
		}
	}
	if strings.HasSuffix(before, ")") && caseArm.MatchString(before) {
		return noProgram
	}
	if at := strings.LastIndexAny(before, "\n;|&("); at >= 0 {
		before = before[at+1:]
	}
	words := strings.Fields(before)
	behind := words
	for len(behind) > 0 && assignment.MatchString(behind[len(behind)-1]) {
		behind = behind[:len(behind)-1]
	}
	switch {
	case len(behind) == 0, runsNext(behind[len(behind)-1]):
		return noProgram
	case takesText(words):
		return noScript
	}
	return ""
}
