package declarative

import (
	"fmt"
	"regexp"
	"strings"
)

// A shell's text never holds a value: where a template stands in it the text names a variable, in quotes, and the values are
// given to the shell beside its text. So no value is ever read by the shell, be it as it may.

// unclear matches texts that may hold no template: there, shells do not agree on where quotes end, or the names of the
// variables are taken.
var unclear = regexp.MustCompile(`\$['"]|toolhub_`)

// shellText returns the text for the shell, with variables in the place of templates, and adds those to the arguments.
func (p *parsing) shellText(v place, text string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	if found := unclear.FindString(text); found != "" {
		fault(p, v, "a text with templates cannot hold %s: write it without", found)
		return ""
	}
	var out strings.Builder
	known := &values{names: make(map[string]bool), numbered: true}
	j := judgement{hasValues: true}
	for rest := text; ; {
		before, after, found := strings.Cut(rest, "{{")
		out.WriteString(before)
		if !found {
			break
		}
		name, after, found := strings.Cut(after, "}}")
		if !found {
			fault(p, v, `there is "{{" without "}}" after it: a template is {{name}}`)
			return ""
		}
		whole := "{{" + name + "}}"
		t := p.template(v, whole)
		if len(t) != 1 {
			return ""
		}
		t.guard(strings.HasSuffix(before, "=") || strings.HasSuffix(strings.TrimRight(before, " \t"), " --"))
		p.arguments, j.shown = append(p.arguments, t), append(j.shown, whole)
		variable := fmt.Sprintf("toolhub_%d", len(p.arguments))
		known.names[variable] = t.isLoose()
		known.loose = known.loose || t.isLoose()
		out.WriteString(`"${` + variable + `}"`)
		rest = after
	}
	p.judged(j.text(out.String(), known, v))
	var setup strings.Builder // takes the values from the shell's own arguments
	for i := range p.arguments {
		fmt.Fprintf(&setup, "toolhub_%d=${%d}; ", i+1, i+1)
	}
	return fmt.Sprintf("%sshift %d; ", setup.String(), len(p.arguments)) + out.String()
}

// judged takes note of why a command is refused.
func (p *parsing) judged(r *refusal) {
	if r != nil {
		fault(p, r.at, "%s", r.why)
	}
}
