package policy

import (
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
	"unicode"
	"unicode/utf8"

	fast "github.com/segmentio/encoding/json"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// errTwice refuses an object that has a member twice, also in another letter case. The hub and the
// tool's server could each read another of the two, and a rule would judge a call that does not
// happen.
var errTwice = errors.New("an object holds one member twice")

// decodeObject decodes the JSON object raw for conditions; nothing stands for {}. Texts are those
// of raw.
func decodeObject(raw json.RawMessage) (map[string]any, error) {
	if len(raw) == 0 {
		return map[string]any{}, nil
	}
	if !rawjson.Valid(raw) {
		return nil, errors.New("no JSON")
	}
	if !rawjson.IsObject(raw) {
		return nil, errors.New("no JSON object")
	}
	if _, twice := rawjson.Repeated(raw, compareFold); twice {
		return nil, errTwice
	}
	m := make(map[string]any)
	if _, err := fast.Parse(raw, &m, fast.UseInt64|fast.UseNumber|fast.DontCopyString); err != nil {
		return nil, err
	}
	convertNumbers(m)
	return m, nil
}

// compareFold orders names. Two are the same if strings.EqualFold says so.
func compareFold(a, b []byte) int {
	for len(a) > 0 && len(b) > 0 {
		x, n := utf8.DecodeRune(a)
		y, m := utf8.DecodeRune(b)
		if c := cmp.Compare(fold(x), fold(y)); c != 0 {
			return c
		}
		a, b = a[n:], b[m:]
	}
	return len(a) - len(b)
}

// fold returns the least of the letters that differ from r in their case alone.
func fold(r rune) rune {
	least := r
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		least = min(least, other)
	}
	return least
}

// convertNumbers makes numbers that are no int64 uint64 or float64. So large ids stay exact.
func convertNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = convertNumbers(member)
		}
	case []any:
		for i, element := range v {
			v[i] = convertNumbers(element)
		}
	case json.Number:
		if u, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
			return u
		}
		f, _ := v.Float64()
		return f // out of range it is infinite, and compares as what it is: larger than any number
	}
	return v
}
