package code

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// arguments are decoded by hand, as strictly as the input schemas say: an operator may switch validation off, and
// encoding/json would take "PATH" for path, refuse 2.0 for an integer and ignore what it does not know.
type arguments struct {
	members map[string]json.RawMessage
	fault   *tool.Failure // the first one; the getters go on with defaults
}

func parseArguments(raw json.RawMessage, known ...string) *arguments {
	a := &arguments{}
	if err := json.Unmarshal(raw, &a.members); err != nil || a.members == nil {
		a.reject("the arguments are not a JSON object: send one with %s", strings.Join(known, ", "))
		return a
	}
	for _, name := range slices.Sorted(maps.Keys(a.members)) {
		if !slices.Contains(known, name) {
			a.reject("unknown argument %q: the arguments are %s", clip(name, 100), strings.Join(known, ", "))
		}
	}
	return a
}

// err is the first fault as an error, or nil.
func (a *arguments) err() error {
	if a.fault == nil {
		return nil
	}
	return a.fault
}

func (a *arguments) reject(format string, args ...any) { a.refuse("", format, args...) }

// refuse is reject for what a schema cannot say.
func (a *arguments) refuse(code, format string, args ...any) {
	if a.fault == nil {
		a.fault = invalid(code, format, args...)
	}
}

// text returns a string of 1 to most characters, or def where it is absent; def "" makes it required.
func (a *arguments) text(name, def string, most int) string {
	raw, ok := a.members[name]
	if !ok {
		if def == "" {
			a.reject("argument %q is missing: send a string", name)
		}
		return def
	}
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		a.reject("argument %q is not a string: send a string of 1 to %d characters", name, most)
		return def
	}
	if n := utf8.RuneCountInString(*s); n < 1 || n > most {
		a.reject("argument %q has %d characters: send 1 to %d", name, n, most)
		return def
	}
	return *s
}

// integer returns a number without fraction from least to most, or def where it is absent.
func (a *arguments) integer(name string, def, least, most int) int {
	raw, ok := a.members[name]
	if !ok {
		return def
	}
	f, err := strconv.ParseFloat(string(raw), 64) // for JSON Schema 2.0 and 2e0 are integers too
	var number json.Number
	if json.Unmarshal(raw, &number) != nil || raw[0] == '"' || err != nil || f != math.Trunc(f) {
		a.reject("argument %q is not an integer: send one from %d to %d", name, least, most)
		return def
	}
	if f < float64(least) || f > float64(most) {
		a.reject("argument %q is out of range: send an integer from %d to %d", name, least, most)
		return def
	}
	return int(f)
}

// boolean returns true or false, or def where it is absent.
func (a *arguments) boolean(name string, def bool) bool {
	switch raw, ok := a.members[name]; {
	case !ok:
		return def
	case string(raw) != "true" && string(raw) != "false":
		a.reject("argument %q is not a boolean: send true or false", name)
		return false
	default:
		return string(raw) == "true"
	}
}

// clip shortens s to about most bytes for a message.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s…", s[:runeBoundary([]byte(s), most)])
}
