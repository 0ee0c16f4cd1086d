package declarative

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The person who declares a tool chooses what it runs, and never the caller: a value of a call is no program, no text that a
// shell or an interpreter takes for a program, and no option that names a program. A command is judged by its words, and what
// it starts in turn by the words behind it. What cannot be judged is refused.

// word is one word of a command, as far as it is known before a call.
type word struct {
	text  string // all of the word, or what it begins with
	known bool   // text is all of it
	value bool   // it holds a value of a call
	loose bool   // it may begin with "-", or come from what another command prints
	many  bool   // it may be several words, or none
	name  string // the program that the word names, without directory and version; "" where that is not known
	shown string // what a person has written
	at    place  // where
}

// isOne reports whether the word is a value that is one word and no option.
func (w *word) isOne() bool { return w.value && !w.many && (!w.loose || w.text != "") }

func (w *word) isOption() bool { return len(w.text) > 1 && (w.text[0] == '-' || w.text[0] == '+') }

// literal is a word that is known.
func literal(text string, at place) word {
	w := word{text: text, known: true, shown: text, at: at}
	if programPattern.MatchString(text) {
		w.name = programName(text)
	}
	return w
}

var programPattern = regexp.MustCompile(`^[A-Za-z0-9_.,:@%+/\[\]~ -]+$`)

// programName is the name of a program without directory, extension and version.
func programName(text string) string {
	name := strings.TrimSuffix(strings.ToLower(path.Base(text)), ".exe")
	if _, special := programs()[name]; special {
		return name
	}
	if short := strings.TrimRight(name, "0123456789.-"); short != "" {
		return short
	}
	return name
}

// refusal says why a command is refused, and which word is to blame.
type refusal struct {
	why string
	at  place
}

func refuse(w *word, format string, args ...any) *refusal {
	return &refusal{fmt.Sprintf(format, args...), w.at}
}

const (
	noProgram = "%s stands where a program does: name the program, and let the value be one of its arguments"
	noScript  = `a shell would take %s for its text: write that yourself, and give the value behind it, where it is "$1"`
	ownScript = "put it into a script of your own and give the value to that as an argument"
)

// judgement is the judging of one tool's command.
type judgement struct {
	hasValues bool            // values reach the command by templates
	functions map[string]bool // that the text defines: their bodies are judged
	names     map[string]bool // variables of the text that hold values
	shown     []string        // the templates of the text, as a person has written them
	depth     int             // of texts within texts
}

// command judges the words of a command, the program first.
func (j *judgement) command(words []word) *refusal {
	program := &words[0]
	switch {
	case program.value:
		return refuse(program, noProgram, clip(program.shown))
	case program.name == "" || program.isOption() || program.text == "-":
		return refuse(program, "which program %s is shows only when it runs: write the name of the program", clip(program.shown))
	}
	rule, isKnown := ruleOf(program.name)
	switch {
	case !isKnown && j.functions[program.text]:
		return nil
	case rule.shell:
		return j.shell(words)
	case rule.wraps != nil:
		return j.wrapper(rule.wraps, words)
	case program.name == "find":
		return j.find(words)
	case rule.language:
		return j.language(words)
	case rule.never != "" && (j.hasValues || slices.ContainsFunc(words, func(w word) bool { return !w.known })):
		return refuse(program, "%s %s: %s", program.name, rule.never, ownScript)
	case j.hasValues && rule.starts:
		return refuse(program, "%s starts other programs, and the hub cannot tell which: %s", program.name, ownScript)
	default:
		return arguments(&rule, words)
	}
}

// arguments judges the values among the arguments of a program that is known by rule, or not at all.
func arguments(rule *programRule, words []word) *refusal {
	program := &words[0]
	closed, operand := false, ""
	for i := 1; i < len(words); i++ {
		w, before := &words[i], &words[i-1]
		if w.known && w.text == "--" {
			closed = true
		}
		if operand == "" && w.known && !w.isOption() && before.text != "-C" {
			operand = w.text
		}
		switch {
		case !w.value:
		case rule.clusters && i > 1 && words[1].known && strings.ContainsAny(words[1].text, rule.short):
			return refuse(w, "%s would be the program that an option of %s names: write that yourself", clip(w.shown), program.name)
		case rule.names:
			return refuse(w, "%s would change the shell by what %s says: use another command", program.shown, clip(w.shown))
		case rule.subcommands != nil && !slices.Contains(rule.subcommands, operand):
			return refuse(w, "%s may run what %s names; of its commands only these take values: %s; or %s", program.name, clip(w.shown),
				strings.Join(rule.subcommands, ", "), ownScript)
		case w.text == "" && i > 1 && !closed && rule.namesProgram(before), w.isOption() && rule.namesProgram(w):
			return refuse(w, "%s would be the program that an option of %s names: write that yourself", clip(w.shown), program.name)
		case w.loose && w.text == "" && !closed && !rule.harmless && !(rule.leading && operand != ""):
			return refuse(w, `%s may begin with "-", so that %s would take it for an option: write -- before it`, clip(w.shown), program.name)
		}
	}
	return nil
}

// namesProgram reports whether the option w names a program, or something like one.
func (r *programRule) namesProgram(w *word) bool {
	if !w.isOption() || r.harmless {
		return false
	}
	if !strings.HasPrefix(w.text, "--") {
		if i := strings.IndexAny(w.text, r.short); r.short != "" && i > 0 {
			return true
		}
	}
	option, _, _ := strings.Cut(strings.ToLower(strings.TrimLeft(w.text, "-+")), "=")
	if strings.ContainsAny(option, " /") {
		return false
	}
	for _, long := range r.long {
		if len(option) > 1 && strings.HasPrefix(long, option) { // programs take long options by their beginnings
			return true
		}
	}
	return slices.ContainsFunc([]string{"exec", "command", "cmd", "program", "shell", "pager", "editor", "browser", "rsh", "askpass", "preload", "plugin",
		"interpreter", "hook"}, func(part string) bool { return strings.Contains(option, part) })
}

// shell judges the words of a shell: sh -c TEXT NAME ARGUMENT…, or sh FILE ARGUMENT….
func (j *judgement) shell(words []word) *refusal {
	program, hasText := &words[0], false
	i := 1
	for ; i < len(words); i++ {
		w := &words[i]
		if w.value {
			return refuse(w, noScript, clip(w.shown))
		}
		if !w.known {
			return refuse(w, "what %s is to %s shows only when it runs: write its options and its text out", clip(w.shown), program.name)
		}
		if w.text == "--" || w.text == "-" {
			i++
			break
		}
		if !w.isOption() {
			break
		}
		switch {
		case strings.HasPrefix(w.text, "--"):
			if slices.Contains([]string{"--rcfile", "--init-file"}, w.text) {
				i++
			}
		case strings.Contains(w.text, "s"):
			return refuse(w, "%s reads its commands from its standard input, which holds values: give it a file", program.name)
		default:
			hasText = hasText || strings.Contains(w.text, "c")
			i += strings.Count(w.text, "o") + strings.Count(w.text, "O")
		}
	}
	if i >= len(words) {
		return refuse(program, "%s reads its commands from its standard input, which holds values: give it a file", program.name)
	}
	text := &words[i]
	switch {
	case text.value:
		return refuse(text, noScript, clip(text.shown))
	case !hasText && text.name != "":
		return nil // a script of the person's own
	case !text.known:
		return refuse(text, "what %s is to %s shows only when it runs: write its options and its text out", clip(text.shown), program.name)
	case !hasText:
		return refuse(text, "%s is no name of a file that the hub can judge: give %s a plain one", clip(text.shown), program.name)
	}
	inner := judgement{hasValues: j.hasValues, depth: j.depth + 1}
	given := words[i+1:]
	return inner.text(text.text, &values{
		names:    j.names,
		numbered: slices.ContainsFunc(given, func(w word) bool { return w.value }),
		loose:    slices.ContainsFunc(given, func(w word) bool { return w.loose }),
	}, text.at)
}

// wrapper judges the words of a program that starts another one.
func (j *judgement) wrapper(wraps *wrapping, words []word) *refusal {
	program, replaced, i := &words[0], "", 1
	for operands := wraps.operands; i < len(words); i++ {
		w := &words[i]
		switch {
		case wraps.assigns && assignment.MatchString(w.text):
			if w.value {
				return refuse(w, noEnvironment, clip(w.shown))
			}
			continue
		case w.known && (w.text == "--" || wraps.assigns && w.text == "-"):
			continue
		case w.isOption():
			takes, ok := wraps.option(w.text)
			if !ok || !w.known && !(w.value && wraps.plain) {
				return refuse(w, "the hub does not know the option %s of %s, and so not what that runs: %s", clip(w.shown), program.name, ownScript)
			}
			if text, ok := wraps.replaces(w.text); ok {
				if replaced = text; text == "" && i+1 < len(words) {
					replaced = words[i+1].text
				}
			}
			if takes && w.known {
				i++
			}
			if i < len(words) && !words[i].known && (!wraps.plain || !words[i].isOne()) {
				return refuse(&words[i], "%s stands in an option of %s, where it may change what runs: write that yourself", clip(words[i].shown), program.name)
			}
			continue
		case operands > 0 && (w.known || wraps.plain && w.isOne()):
			operands--
			continue
		}
		break
	}
	if i >= len(words) {
		return nil // it starts nothing
	}
	rest := slices.Clone(words[i:])
	if wraps.input && replaced == "" {
		rest = append(rest, word{value: true, loose: true, shown: "what " + program.name + " reads", at: program.at})
	}
	for k := range rest {
		if w := &rest[k]; replaced != "" && strings.Contains(w.text, replaced) {
			before, _, _ := strings.Cut(w.text, replaced)
			*w = word{text: before, value: true, loose: true, shown: w.shown, at: w.at}
		}
	}
	outside := *j
	outside.functions = nil // it starts programs alone
	return outside.command(rest)
}

// assignment is a word that sets a variable for the command behind it.
var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

const noEnvironment = "%s would be a variable of a program, and some name other programs: give the value as an argument"

// find judges the words of find, whose tests take values and whose actions are commands.
func (j *judgement) find(words []word) *refusal {
	for i := 1; i < len(words); i++ {
		w, before := &words[i], &words[i-1]
		switch {
		case isAction(w):
			end := i + 1
			var inner []word
			for ; end < len(words) && (!words[end].known || words[end].text != ";" && words[end].text != "+"); end++ {
				one := words[end]
				if strings.Contains(one.text, "{}") {
					one.value, one.known, one.name, one.text = true, false, "", ""
				}
				inner = append(inner, one)
			}
			switch {
			case len(inner) == 0:
				return refuse(w, "%s of find names no program: write one behind it", w.text)
			case slices.ContainsFunc(inner, func(w word) bool { return isAction(&w) }):
				return refuse(w, `a value ";" would end this %s of find: end it yourself`, w.text)
			}
			outside := *j
			outside.functions = nil
			if r := outside.command(inner); r != nil {
				return r
			}
			i = end
		case !w.value:
			if !w.known && w.loose {
				return refuse(w, "what %s is to find shows only when it runs: write it out", clip(w.shown))
			}
		case before.known && slices.Contains(findTests(), before.text):
		case w.loose || w.text == "" && slices.ContainsFunc(words[1:i], func(w word) bool { return w.isOption() && w.text != "--" }):
			return refuse(w, "find may take %s for an action, which can run a program: let it stand behind a test, such as -name", clip(w.shown))
		}
	}
	return nil
}

// isAction reports whether find runs the words behind w.
func isAction(w *word) bool {
	return w.known && slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, w.text)
}

func findTests() []string {
	return []string{"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-lname", "-ilname", "-newer", "-anewer", "-cnewer",
		"-samefile", "-mtime", "-mmin", "-ctime", "-cmin", "-atime", "-amin", "-size", "-type", "-xtype", "-user", "-group", "-uid", "-gid", "-perm", "-links",
		"-inum", "-maxdepth", "-mindepth", "-newermt", "-newerct", "-printf"}
}

// language judges the words of an interpreter: it may run a file of the person's own, or a text of the person's own where
// no value is near.
func (j *judgement) language(words []word) *refusal {
	program := &words[0]
	if !slices.ContainsFunc(words[1:], func(w word) bool { return !w.isOption() && w.text != "-" || strings.ContainsAny(w.text, "ecEmrpf=") }) {
		return refuse(program, "%s reads its program from its standard input, which holds values: give it a file", program.name)
	}
	first := &words[1]
	switch {
	case first.value:
		return refuse(first, "%s would take %s for its program or for an option: name a script of your own, and give the value behind it", program.name, clip(first.shown))
	case !j.hasValues, first.name != "" && !first.isOption() && first.text != "-" && !textFirst(program.name), harmlessFilter(words):
		return nil
	}
	return refuse(program, "what %s would do with values the hub cannot tell: %s, as in %s FILE {{value}}", program.name, ownScript, program.name)
}

// textFirst reports whether the program takes its first operand for a program.
func textFirst(name string) bool {
	return slices.Contains([]string{"awk", "gawk", "mawk", "nawk", "sed", "gsed"}, name)
}

// harmlessFilter reports whether the words are those of an awk or sed whose text starts nothing. Values may be files, and
// with awk variables (-v name=value).
func harmlessFilter(words []word) bool {
	name, i := words[0].name, 1
	if !textFirst(name) {
		return false
	}
	isSed := strings.HasSuffix(name, "sed")
	for ; i < len(words) && words[i].isOption(); i++ {
		w := &words[i]
		switch {
		case isSed && w.known && slices.Contains([]string{"-n", "-E", "-r", "-s", "-u", "-z", "-nE", "-En", "-nr", "-rn"}, w.text):
		case !isSed && (w.known && strings.HasPrefix(w.text, "-F") && len(w.text) > 2 || strings.HasPrefix(w.text, "-v") && assignment.MatchString(w.text[2:])):
		case !isSed && w.known && (w.text == "-F" || w.text == "-v") && i+1 < len(words) && (w.text == "-F" || assignment.MatchString(words[i+1].text)):
			i++
		default:
			return false
		}
	}
	if i >= len(words) || !words[i].known {
		return false
	}
	if slices.ContainsFunc(words[i+1:], func(w word) bool { return w.loose || w.isOption() }) {
		return false
	}
	if isSed {
		return sedText.MatchString(words[i].text)
	}
	return !awkStarts.MatchString(words[i].text)
}

var (
	// awkStarts matches an awk text that starts a program, includes another text, or calls a function by a computed name.
	awkStarts = regexp.MustCompile(`system|\||getline|@`)
	// sedText is a text of sed that prints, deletes and replaces only.
	sedText = regexp.MustCompile(`^\s*([0-9$]+(,[0-9$]+)?)?\s*([pdqDPN=]|(/[^/\\\n]*/)[pdq]|s/[^/\\\n]*/[^/\\\n]*/[gpiI0-9]*|s\|[^|\\\n]*\|[^|\\\n]*\|[gpiI0-9]*|s,[^,\\\n]*,[^,\\\n]*,[gpiI0-9]*)\s*$`)
)
