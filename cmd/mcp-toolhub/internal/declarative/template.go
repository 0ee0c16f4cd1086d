package declarative

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/schema"
)

const (
	maxArguments = 500
	maxValue     = 64 << 10 // bytes of one value
)

// template is one argument of a command: text, and between it values of the call. Whatever they
// are, it stays one argument.
type template []piece

// piece is a text, or the value of a property.
type piece struct {
	text string
	name string // of the property; "" for a text
	variable

	// guarded says that the argument begins with the value, which the program would take for an
	// option if it began with "-".
	guarded bool
}

// guard makes a template that begins with a text of the caller's refuse what looks like an option,
// unless that is closed off by "--" before it.
func (t template) guard(closed bool) {
	if len(t) > 0 {
		t[0].guarded = t[0].name != "" && t[0].kind == "string" && !t[0].listed && !closed
	}
}

// template reads an argument: text with {{name}} in it, name being a property of the input schema that has a value in
// every call.
func (p *parsing) template(v place, text string) template {
	if strings.ContainsRune(text, 0) {
		fault(p, v, "holds a NUL character, which no argument can: remove it")
		return nil
	}
	var t template
	for rest := text; ; {
		before, after, found := strings.Cut(rest, "{{")
		if before != "" {
			t = append(t, piece{text: before})
		}
		if !found {
			return t
		}
		name, after, found := strings.Cut(after, "}}")
		if !found {
			fault(p, v, `there is "{{" without "}}" after it: a template is {{name}}`)
			return nil
		}
		one, ok := p.variable(v, strings.TrimSpace(name), "{{"+hidden.Cut(strings.TrimSpace(name), 100)+"}}")
		if !ok {
			return nil
		}
		t = append(t, one)
		rest = after
	}
}

// variable is the piece that stands for a property, which the file calls by what is shown.
func (p *parsing) variable(v place, name, shown string) (piece, bool) {
	variable, ok := p.vars[name]
	switch {
	case !ok && p.vars == nil:
		return piece{}, false // the schema has faults of its own
	case !ok:
		fault(p, v, "%s names no property of input_schema, and nothing else can stand there: %s", shown, p.properties())
	case !slices.Contains([]string{"string", "integer", "number", "boolean"}, variable.kind):
		fault(p, v, "%s is of type %s, which is no single value: the command can read it from its standard input",
			shown, cmp.Or(variable.kind, "any"))
	case !variable.required && variable.fallback == nil:
		fault(p, v, "%s may be missing in a call: add it to required, or give it a default", shown)
	default:
		one := piece{name: name, variable: variable}
		if err := one.checkFallback(); err != nil {
			fault(p, v, "the default of %s: %s", name, err)
			return piece{}, false
		}
		return one, true
	}
	return piece{}, false
}

func (p *parsing) properties() string {
	if len(p.vars) == 0 {
		return "the schema has no properties"
	}
	return "the properties are " + strings.Join(slices.Sorted(maps.Keys(p.vars)), ", ")
}

func (one piece) checkFallback() error {
	if one.fallback == nil {
		return nil
	}
	if s, err := schema.Compile(one.raw); err == nil && s.Validate(one.fallback) != nil {
		return fmt.Errorf("its own schema refuses it: change one of them")
	}
	_, err := one.value(one.fallback)
	return err
}

// expand returns the argument for the values of a call, by property.
func (t template) expand(values map[string]json.RawMessage) (string, error) {
	var b strings.Builder
	for _, one := range t {
		if one.name == "" {
			b.WriteString(one.text)
			continue
		}
		raw, ok := values[one.name]
		if !ok {
			raw = one.fallback
		}
		text, err := one.value(raw)
		if err != nil {
			return "", fmt.Errorf("argument %q %w", one.name, err)
		}
		b.WriteString(text)
	}
	text := b.String()
	if len(t) > 0 && t[0].guarded && strings.HasPrefix(text, "-") {
		return "", fmt.Errorf(`argument %q begins with "-", so that the program would take it for an option: send another `+
			`value`, t[0].name)
	}
	return text, nil
}

var wholeNumber = regexp.MustCompile(`^-?[0-9]{1,40}$`)

// value writes a value into an argument. The schema has admitted the value, but may admit more than
// an argument can hold.
func (one piece) value(raw json.RawMessage) (string, error) {
	switch one.kind {
	case "string":
		text, ok := rawjson.String(raw)
		switch {
		case !ok:
			return "", fmt.Errorf("is no string: send one")
		case strings.ContainsRune(text, 0):
			return "", fmt.Errorf("holds a NUL character, which no command can be given: send it without")
		case len(text) > maxValue:
			return "", fmt.Errorf("is over %d bytes long: send a shorter one", maxValue)
		}
		return text, nil
	case "boolean":
		if s := string(raw); s == "true" || s == "false" {
			return s, nil
		}
		return "", fmt.Errorf("is no boolean: send true or false")
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	var number json.Number
	switch {
	case err != nil || len(raw) > 64 || raw[0] == '"' || json.Unmarshal(raw, &number) != nil:
		return "", fmt.Errorf("is no number, or too long a one: send a shorter one")
	case one.kind == "number" || wholeNumber.Match(raw):
		return string(raw), nil
	case f != math.Trunc(f) || math.Abs(f) > 1<<53: // 2.0 and 2e0 are integers, too
		return "", fmt.Errorf("is no integer, or too large a one: send its digits")
	}
	return strconv.FormatFloat(f, 'f', 0, 64), nil
}
