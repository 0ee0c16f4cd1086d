package shape

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// OneOf is one of these words.
func OneOf[S ~string](words ...S) As[S] {
	s := As[S]{}
	for _, word := range words {
		s.OneOf = append(s.OneOf, string(word))
	}
	return s
}

// As is a string of a type of its own.
type As[S ~string] struct{ Text }

// Read reads the string.
func (s As[S]) Read(r *Reader, n *textfile.Node) (S, bool) {
	v, ok := s.Text.Read(r, n)
	return S(v), ok
}

// Text is a string.
type Text struct {
	Expand  bool                              // ${…} stands for something, see variables
	Empty   bool                              // "" is allowed
	Scalar  bool                              // a number or boolean is taken as it is written
	OneOf   []string                          // nil: any
	Pattern *regexp.Regexp                    // nil: any
	Want    string                            // what pattern means, for the message
	Check   func(string) (fault, hint string) // nil: any. Its answers do not hold the string.
}

func (s Text) Read(r *Reader, n *textfile.Node) (string, bool) {
	switch n.Kind {
	case textfile.Text:
	case textfile.Bool, textfile.Integer, textfile.Number:
		if !s.Scalar {
			r.Expected(n, s.wanted(), "put it in quotes")
			return "", false
		}
	default:
		r.Expected(n, s.wanted(), "")
		return "", false
	}
	v := n.Text
	if s.Expand {
		e, ok := r.Expand(n.Position, v, true)
		if !ok {
			return "", false
		}
		if v = e.Text; e.Unknown {
			return v, true // nothing can be said of a value that is known in part
		}
	}
	return v, s.sound(r, n, v)
}

// sound checks the value itself, and says nothing of it.
func (s Text) sound(r *Reader, n *textfile.Node, v string) bool {
	var message, hint string
	switch {
	case s.OneOf != nil:
		if !slices.Contains(s.OneOf, v) {
			message, hint = "want "+s.wanted(), textfile.DidYouMean(v, s.OneOf, "choose one of them")
		}
	case v == "" && !s.Empty:
		message, hint = "is empty", "write a value, or remove the key"
	case s.Pattern != nil && !s.Pattern.MatchString(v):
		message = "want " + s.Want
	case s.Check != nil:
		message, hint = s.Check(v)
	}
	if message != "" {
		r.Fault(n.Position, message, hint)
	}
	return message == ""
}

func (s Text) wanted() string {
	if s.OneOf == nil {
		return "a string"
	}
	quoted := make([]string, len(s.OneOf))
	for i, o := range s.OneOf {
		quoted[i] = strconv.Quote(o)
	}
	if len(quoted) == 1 {
		return quoted[0]
	}
	return strings.Join(quoted[:len(quoted)-1], ", ") + " or " + quoted[len(quoted)-1]
}

func (s Text) Schema() Schema {
	m := Schema{"type": "string"}
	if s.Scalar {
		m["type"] = []string{"string", "number", "boolean"}
	}
	switch {
	case s.OneOf != nil:
		m["enum"] = s.OneOf
	case s.Pattern != nil && !s.Expand:
		m["pattern"] = s.Pattern.String()
	case !s.Empty:
		m["minLength"] = 1
	}
	return m
}

// Boolean is true or false, and no word for them.
type Boolean struct{}

func (Boolean) Read(r *Reader, n *textfile.Node) (bool, bool) {
	if n.Kind != textfile.Bool {
		hint := ""
		if n.Kind == textfile.Text {
			hint = "write true or false, without quotes"
		}
		r.Expected(n, "true or false", hint)
		return false, false
	}
	return strings.EqualFold(n.Text, "true"), true
}

func (Boolean) Schema() Schema { return Schema{"type": "boolean"} }

// Integer is a whole number within bounds.
type Integer[N int | int64] struct{ Min, Max N }

func (s Integer[N]) Read(r *Reader, n *textfile.Node) (N, bool) {
	if n.Kind != textfile.Integer {
		r.Expected(n, "a whole number", "")
		return 0, false
	}
	v, ok := parseInteger(n.Text)
	if !ok || v < int64(s.Min) || v > int64(s.Max) {
		r.Fault(n.Position, "out of range", fmt.Sprintf("write a number from %d to %d", s.Min, s.Max))
		return 0, false
	}
	return N(v), true
}

// parseInteger reads decimal, and what else the formats call an integer (0x10, 0o17, 1_000).
func parseInteger(text string) (int64, bool) {
	text = strings.ReplaceAll(text, "_", "")
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return v, true
	}
	v, err := strconv.ParseInt(text, 0, 64)
	return v, err == nil
}

func (s Integer[N]) Schema() Schema {
	return Schema{"type": "integer", "minimum": s.Min, "maximum": s.Max}
}

// Duration is a string of a number and a unit.
type Duration struct {
	Min, Max time.Duration
	Days     bool // whole days ("7d") are a unit too
}

const durationPattern = `([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+`

func (s Duration) Read(r *Reader, n *textfile.Node) (time.Duration, bool) {
	switch n.Kind {
	case textfile.Text:
	case textfile.Integer, textfile.Number:
		r.Fault(n.Position, "a number without a unit", `write a duration with its unit, in quotes: "30s", "5m", "1h"`)
		return 0, false
	default:
		r.Expected(n, "a duration", `write it with its unit: "30s", "5m", "1h"`)
		return 0, false
	}
	v, ok := s.parse(n.Text)
	if !ok {
		r.Fault(n.Position, "not a duration", `write a number and a unit: "30s", "5m", "1h"`)
		return 0, false
	}
	if v < s.Min || v > s.Max {
		r.Fault(n.Position, "out of range", fmt.Sprintf("write a duration from %s to %s", Short(s.Min), Short(s.Max)))
		return 0, false
	}
	return v, true
}

func (s Duration) parse(text string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(text, "d"); ok && s.Days {
		n, err := strconv.ParseInt(days, 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/int64(24*time.Hour) {
			return 0, false
		}
		return time.Duration(n) * 24 * time.Hour, true
	}
	v, err := time.ParseDuration(text)
	return v, err == nil
}

// Short drops the zero units of a duration: 24h, not 24h0m0s.
func Short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

func (s Duration) Schema() Schema {
	pattern := durationPattern
	if s.Days {
		pattern = "(" + durationPattern + "|[0-9]+d)"
	}
	if s.Min == 0 {
		pattern = "(0|" + pattern + ")"
	}
	return Schema{"type": "string", "pattern": "^" + pattern + "$"}
}

// Size is a number of bytes: an integer, or a string with a unit.
type Size[N int | int64] struct{ Min, Max N }

var sizePattern = regexp.MustCompile(`^([0-9]+) ?(B|kB|KB|KiB|MB|MiB|GB|GiB)$`)

func (s Size[N]) Read(r *Reader, n *textfile.Node) (N, bool) {
	var v int64
	ok := false
	switch n.Kind {
	case textfile.Integer:
		v, ok = parseInteger(n.Text)
	case textfile.Text:
		if v, ok = parseSize(n.Text); !ok {
			r.Fault(n.Position, "not a size", `write bytes, or a number and a unit: 1048576, "64MiB", "10MB"`)
			return 0, false
		}
	default:
		r.Expected(n, "a size", `write bytes, or a number and a unit: 1048576, "64MiB", "10MB"`)
		return 0, false
	}
	if !ok || v < int64(s.Min) || v > int64(s.Max) {
		r.Fault(n.Position, "out of range", fmt.Sprintf("write a size from %d to %d bytes", s.Min, s.Max))
		return 0, false
	}
	return N(v), true
}

func parseSize(text string) (int64, bool) {
	m := sizePattern.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	units := map[string]int64{"B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20,
		"GiB": 1 << 30}
	n, err := strconv.ParseInt(m[1], 10, 64)
	unit := units[m[2]]
	if err != nil || n > math.MaxInt64/unit {
		return math.MaxInt64, err == nil
	}
	return n * unit, true
}

func (s Size[N]) Schema() Schema {
	return Schema{"anyOf": []Schema{
		{"type": "integer", "minimum": s.Min, "maximum": s.Max},
		{"type": "string", "pattern": sizePattern.String()},
	}}
}
