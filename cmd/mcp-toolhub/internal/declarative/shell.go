package declarative

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
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
		if one, ok := p.variable(v, name, "$"+variablePrefix+hidden.Cut(name, 100)); ok {
			t := template{one}
			t.guard(false)
			p.variables = append(p.variables, t)
		}
	}
}

var (
	// shells take -c and a text, or the name of a file; what stands behind that are its arguments.
	shells = regexp.MustCompile(`^(sh|bash|rbash|dash|ash|zsh|ksh|mksh|yash)[0-9.-]*$`)
	// runners start what their arguments name, or take a text in more ways than that.
	runners = regexp.MustCompile(`^(env|busybox|toybox|fish|csh|tcsh|cmd|powershell|pwsh)$`)
)

// checkWords refuses values that a shell would take for its text, and values that env and others would
// take for a program or a variable. These are all the programs that it knows: what others do with
// their arguments is for the person to know.
func (p *parsing) checkWords(program place, args []place) {
	name := programName(program)
	switch {
	case runners.MatchString(name):
		for _, arg := range args {
			if holdsValue(arg) {
				fault(p, arg, "%s may run what %s says: call the program itself, or a script of your own, and give that "+
					"the value", name, hidden.Cut(arg.Value, 100))
			}
			if shells.MatchString(programName(arg)) {
				fault(p, arg, "a shell behind %s may read its commands from its standard input, where the arguments of "+
					"the call are: call the shell itself", name)
			}
		}
	case shells.MatchString(name):
		text := 0
		if len(args) > 0 && args[0].Value == "-c" {
			text = 1
		}
		switch {
		case text >= len(args) || args[text].Value == "" || strings.Contains("-+", args[text].Value[:1]):
			fault(p, program, "%s would take its commands from elsewhere, as its standard input, where the arguments of "+
				"the call are: begin args with -c and a text, or with a file", name)
		case holdsValue(args[text]):
			fault(p, args[text], "%s stands where a shell's text or file does: write that yourself, and give the value "+
				`behind it; in a shell's text it is "$1"`, hidden.Cut(args[text].Value, 100))
		}
	}
}

func holdsValue(w place) bool { return strings.Contains(w.Value, "{{") }

// programName is the name of the program that a word names, without its directory. env makes several words of one.
func programName(w place) string {
	first, _, _ := strings.Cut(strings.TrimLeft(strings.ReplaceAll(w.Value, `\`, "/"), " \t\n"), " ")
	return strings.TrimSuffix(strings.ToLower(path.Base(first)), ".exe")
}
