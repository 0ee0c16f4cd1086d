package declarative

import (
	"fmt"
	"regexp"
	"strings"
)

// A shell's text never holds a value: where a template stands in it the text names a variable, in quotes, and the values are
// given to the shell beside its text. So no value is ever read by the shell, be it as it may.

// unclear is what a template may not share a text with: there, a variable's value is read once more, or quotes mean something
// else, or the numbered arguments are already somebody's.
func unclear() []*unclearPart {
	part := func(pattern, what string) *unclearPart { return &unclearPart{regexp.MustCompile(pattern), what} }
	return []*unclearPart{
		part("`", "a backquote (write $(…))"), part(`<<`, "a here-document"), part(`\(\(`, "arithmetic"), part(`\[\[`, "[["),
		part(`\$'`, "$'…'"), part(`\$["]`, `$"…"`), part(`(^|[\s;&|({])(eval|source|\.|shift|set|let|declare|typeset|local|trap|alias)([\s;]|$)`,
			"eval, source, shift, set, let, trap, alias or the like"),
		part(`\$\{?[0-9@*#]`, "$1, $@ or the like"), part(`toolhub_`, "a name with toolhub_"),
	}
}

type unclearPart struct {
	*regexp.Regexp
	what string
}

// shellText returns the text for the shell, with variables in the place of templates, and adds those to the arguments.
func (p *parsing) shellText(v value, text string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	for _, part := range unclear() {
		if part.MatchString(text) {
			p.fault(v.at, v.key, "a text with templates cannot hold %s: give the values by args, as \"$1\", \"$2\" …", part.what)
			return ""
		}
	}
	var out strings.Builder
	quote := byte(0)
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case strings.HasPrefix(text[i:], "{{"):
			end := strings.Index(text[i:], "}}")
			if end < 0 {
				p.fault(v.at, v.key, `there is "{{" without "}}" after it: a template is {{name}}`)
				return ""
			}
			whole := text[i : i+end+2]
			if !p.wholeWord(v, text[:i], whole, text[i+end+2:], quote != 0) {
				return ""
			}
			if wrong := namesProgram(text[:i]); wrong != "" {
				p.fault(v.at, v.key, wrong, clip(whole))
				return ""
			}
			t := p.template(v, whole)
			if len(t) != 1 {
				return ""
			}
			before := strings.Fields(text[:i])
			t.guard(strings.HasSuffix(text[:i], "=") || len(before) > 0 && before[len(before)-1] == "--")
			p.arguments = append(p.arguments, t)
			fmt.Fprintf(&out, `"${toolhub_%d}"`, len(p.arguments))
			i += len(whole)
			continue
		case c == '\\' && strings.HasPrefix(text[i+1:], "{{"):
			p.fault(v.at, v.key, "a template is no word of its own behind a backslash: take that away")
			return ""
		case c == '\\' && quote != '\'' && i+1 < len(text):
			out.WriteByte(c)
			i++
			c = text[i]
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote:
			quote = 0
		case quote == 0 && c == '#' && (i == 0 || strings.ContainsRune(" \t\n;&|(", rune(text[i-1]))):
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				end = len(text) - i
			}
			if strings.Contains(text[i:i+end], "{{") {
				p.fault(v.at, v.key, "a template stands in a comment: remove it")
				return ""
			}
			out.WriteString(text[i : i+end])
			i += end
			continue
		}
		out.WriteByte(c)
		i++
	}
	return p.setup() + out.String()
}

// wholeWord reports whether a template stands where a word of its own may stand.
func (p *parsing) wholeWord(v value, before, whole, after string, quoted bool) bool {
	switch {
	case quoted:
		p.fault(v.at, v.key, "%s stands in quotes: take them away, for the value is quoted anyway", clip(whole))
	case before != "" && !strings.ContainsRune(" \t\n=|&;(", rune(before[len(before)-1])),
		after != "" && !strings.ContainsRune(" \t\n|&;)<>", rune(after[0])):
		p.fault(v.at, v.key, "%s is no word of its own: let white space stand around it, or = before it", clip(whole))
	default:
		return true
	}
	return false
}

// setup is the beginning of a text with templates: it takes the values from the shell's own arguments.
func (p *parsing) setup() string {
	var b strings.Builder
	for i := range p.arguments {
		fmt.Fprintf(&b, "toolhub_%d=${%d}; ", i+1, i+1)
	}
	fmt.Fprintf(&b, "shift %d; ", len(p.arguments))
	return b.String()
}
