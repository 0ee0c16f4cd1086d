package config

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

// shape is the form of a value of the file. It reads such a value, and writes the JSON Schema of it.
type shape[V any] interface {
	// read returns the value of n, and whether all of it is sound. What is not was reported.
	read(r *reader, n *textfile.Node) (V, bool)
	schema() schema
}

// located is a value with its place, for checks that need more than the value. Its zero value is an absent key.
type located[V any] struct {
	textfile.Position
	path    string
	node    *textfile.Node
	present bool // the key stands in the file
	ok      bool // and its value is sound
	value   V
}

// or is the value, and usual where the key is absent.
func (v located[V]) or(usual V) V {
	if v.present {
		return v.value
	}
	return usual
}

// values are the values without their places.
func values[V any](all []located[V]) (out []V) {
	for _, v := range all {
		out = append(out, v.value)
	}
	return out
}

// in keeps the place of what the inner shape reads. It is always sound itself: whoever uses the value looks at ok.
type in[V any] struct{ shape shape[V] }

func (s in[V]) read(r *reader, n *textfile.Node) (located[V], bool) {
	v, ok := s.shape.read(r, n)
	return located[V]{n.Position, r.path, n, true, ok, v}, true
}

func (s in[V]) schema() schema { return s.shape.schema() }

// oneOf is one of these words.
func oneOf[S ~string](words ...S) (s text) {
	for _, word := range words {
		s.oneOf = append(s.oneOf, string(word))
	}
	return s
}

// text is a string.
type text struct {
	expand  bool                              // ${…} stands for something, see variables
	empty   bool                              // "" is allowed
	scalar  bool                              // a number or boolean is taken as it is written
	oneOf   []string                          // nil: any
	pattern *regexp.Regexp                    // nil: any
	want    string                            // what pattern means, for the message
	check   func(string) (fault, hint string) // nil: any. Its answers do not hold the string.
}

func (s text) read(r *reader, n *textfile.Node) (string, bool) {
	switch n.Kind {
	case textfile.Text:
	case textfile.Bool, textfile.Integer, textfile.Number:
		if !s.scalar {
			r.expected(n, s.wanted(), "put it in quotes")
			return "", false
		}
	default:
		r.expected(n, s.wanted(), "")
		return "", false
	}
	v := n.Text
	if s.expand {
		e, ok := r.expand(n.Position, v, true)
		if !ok {
			return "", false
		}
		if v = e.text; e.unknown {
			return v, true // nothing can be said of a value that is known in part
		}
	}
	return v, s.sound(r, n, v)
}

// sound checks the value itself, and says nothing of it.
func (s text) sound(r *reader, n *textfile.Node, v string) bool {
	var message, hint string
	switch {
	case s.oneOf != nil:
		if !slices.Contains(s.oneOf, v) {
			message, hint = "want "+s.wanted(), textfile.DidYouMean(v, s.oneOf, "choose one of them")
		}
	case v == "" && !s.empty:
		message, hint = "is empty", "write a value, or remove the key"
	case s.pattern != nil && !s.pattern.MatchString(v):
		message = "want " + s.want
	case s.check != nil:
		message, hint = s.check(v)
	}
	if message != "" {
		r.fault(n.Position, message, hint)
	}
	return message == ""
}

func (s text) wanted() string {
	if s.oneOf == nil {
		return "a string"
	}
	quoted := make([]string, len(s.oneOf))
	for i, o := range s.oneOf {
		quoted[i] = strconv.Quote(o)
	}
	if len(quoted) == 1 {
		return quoted[0]
	}
	return strings.Join(quoted[:len(quoted)-1], ", ") + " or " + quoted[len(quoted)-1]
}

func (s text) schema() schema {
	m := schema{"type": "string"}
	if s.scalar {
		m["type"] = []string{"string", "number", "boolean"}
	}
	switch {
	case s.oneOf != nil:
		m["enum"] = s.oneOf
	case s.pattern != nil && !s.expand:
		m["pattern"] = s.pattern.String()
	case !s.empty:
		m["minLength"] = 1
	}
	return m
}

// boolean is true or false, and no word for them.
type boolean struct{}

func (boolean) read(r *reader, n *textfile.Node) (bool, bool) {
	if n.Kind != textfile.Bool {
		hint := ""
		if n.Kind == textfile.Text {
			hint = "write true or false, without quotes"
		}
		r.expected(n, "true or false", hint)
		return false, false
	}
	return strings.EqualFold(n.Text, "true"), true
}

func (boolean) schema() schema { return schema{"type": "boolean"} }

// integer is a whole number within bounds.
type integer struct{ min, max int64 }

func (s integer) read(r *reader, n *textfile.Node) (int64, bool) {
	if n.Kind != textfile.Integer {
		r.expected(n, "a whole number", "")
		return 0, false
	}
	v, ok := parseInteger(n.Text)
	if !ok || v < s.min || v > s.max {
		r.fault(n.Position, "out of range", fmt.Sprintf("write a number from %d to %d", s.min, s.max))
		return 0, false
	}
	return v, true
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

func (s integer) schema() schema {
	return schema{"type": "integer", "minimum": s.min, "maximum": s.max}
}

// number narrows an integer to the int of a settings struct.
type number struct{ min, max int32 }

func (s number) read(r *reader, n *textfile.Node) (int, bool) {
	v, ok := integer{int64(s.min), int64(s.max)}.read(r, n)
	return int(v), ok
}

func (s number) schema() schema { return integer{int64(s.min), int64(s.max)}.schema() }

// duration is a string of a number and a unit.
type duration struct {
	min, max time.Duration
	days     bool // whole days ("7d") are a unit too
}

const durationPattern = `([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+`

// timeout is the shape of every timeout.
var timeout = duration{min: time.Millisecond, max: 24 * time.Hour}

func (s duration) read(r *reader, n *textfile.Node) (time.Duration, bool) {
	switch n.Kind {
	case textfile.Text:
	case textfile.Integer, textfile.Number:
		r.fault(n.Position, "a number without a unit", `write a duration with its unit, in quotes: "30s", "5m", "1h"`)
		return 0, false
	default:
		r.expected(n, "a duration", `write it with its unit: "30s", "5m", "1h"`)
		return 0, false
	}
	v, ok := s.parse(n.Text)
	if !ok {
		r.fault(n.Position, "not a duration", `write a number and a unit: "30s", "5m", "1h"`)
		return 0, false
	}
	if v < s.min || v > s.max {
		r.fault(n.Position, "out of range", fmt.Sprintf("write a duration from %s to %s", short(s.min), short(s.max)))
		return 0, false
	}
	return v, true
}

func (s duration) parse(text string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(text, "d"); ok && s.days {
		n, err := strconv.ParseInt(days, 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/int64(24*time.Hour) {
			return 0, false
		}
		return time.Duration(n) * 24 * time.Hour, true
	}
	v, err := time.ParseDuration(text)
	return v, err == nil
}

// short drops the zero units of a duration: 24h, not 24h0m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

func (s duration) schema() schema {
	pattern := durationPattern
	if s.days {
		pattern = "(" + durationPattern + "|[0-9]+d)"
	}
	if s.min == 0 {
		pattern = "(0|" + pattern + ")"
	}
	return schema{"type": "string", "pattern": "^" + pattern + "$"}
}

// size is a number of bytes: an integer, or a string with a unit.
type size struct{ min, max int64 }

var sizePattern = regexp.MustCompile(`^([0-9]+) ?(B|kB|KB|KiB|MB|MiB|GB|GiB)$`)

func (s size) read(r *reader, n *textfile.Node) (int64, bool) {
	var v int64
	ok := false
	switch n.Kind {
	case textfile.Integer:
		v, ok = parseInteger(n.Text)
	case textfile.Text:
		if v, ok = parseSize(n.Text); !ok {
			r.fault(n.Position, "not a size", `write bytes, or a number and a unit: 1048576, "64MiB", "10MB"`)
			return 0, false
		}
	default:
		r.expected(n, "a size", `write bytes, or a number and a unit: 1048576, "64MiB", "10MB"`)
		return 0, false
	}
	if !ok || v < s.min || v > s.max {
		r.fault(n.Position, "out of range", fmt.Sprintf("write a size from %d to %d bytes", s.min, s.max))
		return 0, false
	}
	return v, true
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

func (s size) schema() schema {
	return schema{"anyOf": []schema{
		{"type": "integer", "minimum": s.min, "maximum": s.max},
		{"type": "string", "pattern": sizePattern.String()},
	}}
}
