package declarative

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// A shell's text never holds a value. The shell gets values as variables of its environment, and as
// arguments.

// variablePrefix stands before the name of a property in the variable that holds its value.
const variablePrefix = "ARG_"

// reads matches where a shell's text reads such a variable.
var reads = regexp.MustCompile(`\$\{?[#!]?` + variablePrefix + `([A-Za-z0-9_]+)`)

// takeText takes a text for the shell, and the variables that it reads. Each of them has a value in
// every call: a text such as rm -r "$ARG_dir"/* does not bear an empty one.
func (p *parsing) takeText(v place) {
	if holdsValue(v) {
		fault(p, v, `"{{" cannot stand in a shell's text: write "$%sname", in double quotes, for the property called `+
			`name; or put {{name}} into args and write "$1"; or put the text into a script of your own`, variablePrefix)
		return
	}
	p.script = v.Value
	var names []string
	for _, found := range reads.FindAllStringSubmatch(v.Value, -1) {
		names = append(names, found[1])
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if one, ok := p.variable(v, name, "$"+variablePrefix+clip(name)); ok {
			t := template{one}
			t.guard(false)
			p.variables = append(p.variables, t)
		}
	}
}

var (
	// starters start the program that one of their first arguments names.
	starters = regexp.MustCompile(`^(env|busybox|toybox)$`)
	// shells take options, and then a text (-c) or the name of a file.
	shells = regexp.MustCompile(`^(sh|bash|rbash|dash|ash|zsh|ksh|mksh|yash)[0-9.-]*$`)
	// otherShells take a text in more ways than that.
	otherShells = regexp.MustCompile(`^(fish|csh|tcsh|cmd|powershell|pwsh)$`)

	assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
	// starterTakes and shellTakes match options that have the next word for their argument.
	starterTakes = regexp.MustCompile(`^(-[a-zA-Z0-9]*[uCaP]|--(unset|chdir|argv0))$`)
	shellTakes   = regexp.MustCompile(`^([-+][a-zA-Z]*[oO]|--(rcfile|init-file))$`)
	// readsInput matches options by which a shell reads its commands from its standard input.
	readsInput = regexp.MustCompile(`^-[a-zA-Z]*s[a-zA-Z]*$`)
)

// checkWords refuses values that env would take for a program or a variable, and values that a shell
// would take for its text. These are all the programs that it knows: what others do with their
// arguments is for the person to know.
func (p *parsing) checkWords(words []place) {
	for starters.MatchString(programName(words[0])) {
		i := p.operand(words[1:], starterTakes)
		if i < 0 || i == len(words[1:]) {
			return
		}
		words = words[1+i:]
	}
	program, rest := words[0], words[1:]
	switch name := programName(program); {
	case otherShells.MatchString(name):
		if i := slices.IndexFunc(rest, holdsValue); i >= 0 {
			fault(p, rest[i], "%s may run what %s says: call a script of your own, and give it the value", name,
				clip(rest[i].Value))
		}
	case shells.MatchString(name):
		i := p.operand(rest, shellTakes)
		isInput := func(w place) bool { return readsInput.MatchString(w.Value) }
		if i == len(rest) || i > 0 && slices.ContainsFunc(rest[:i], isInput) {
			fault(p, program,
				"%s would read its commands from its standard input, where the arguments of the call are: "+
					"give it -c and a text, or a file", name)
		}
	}
}

// operand returns the index of the first word that is no option, no variable, and not what an option
// takes: a program, a text or a file. It is len(words) where there is none, and -1 after a fault: no
// value is an operand, or stands before it.
func (p *parsing) operand(words []place, takes *regexp.Regexp) int {
	taken := false // by the option before
	for i, w := range words {
		switch {
		case holdsValue(w):
			fault(p, w, "%s stands where a program, a shell's text or an option of these does: write that yourself, "+
				`and give the value behind it; in a shell's text it is "$1"`, clip(w.Value))
			return -1
		case taken:
			taken = false
		case w.Value == "" || !strings.Contains("-+", w.Value[:1]) && !assignment.MatchString(w.Value):
			return i
		default:
			taken = takes.MatchString(w.Value)
		}
	}
	return len(words)
}

func holdsValue(w place) bool { return strings.Contains(w.Value, "{{") }

// programName is the name of the program that a word names, without its directory. env makes several words of one.
func programName(w place) string {
	first, _, _ := strings.Cut(strings.TrimLeft(strings.ReplaceAll(w.Value, `\`, "/"), " \t\n"), " ")
	return strings.TrimSuffix(strings.ToLower(path.Base(first)), ".exe")
}
