package policy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// errTwice refuses an object that has a member twice, also in another letter case. The hub and the
// tool's server could each read another of the two, and a rule would judge a call that does not
// happen.
var errTwice = errors.New("an object holds one member twice")

// decodeObject decodes the JSON object raw for conditions; nothing stands for {}.
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
	return decodeMembers(raw)
}

func decodeMembers(raw []byte) (map[string]any, error) {
	m := make(map[string]any)
	var fault error
	err := rawjson.Members(raw, func(member rawjson.Member) bool {
		m[member.Name()], fault = decodeValue(member.Value)
		return fault == nil
	})
	if fault != nil {
		return nil, fault
	}
	return m, err
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

// decodeValue decodes any JSON value: whole numbers are int64 or uint64 where they fit, so that large ids stay exact.
func decodeValue(raw []byte) (any, error) {
	if len(raw) == 0 {
		return nil, rawjson.ErrSyntax
	}
	switch raw[0] {
	case '{':
		return decodeMembers(raw)
	case '[':
		list := []any{}
		var fault error
		err := rawjson.Elements(raw, func(value []byte) bool {
			var v any
			if v, fault = decodeValue(value); fault != nil {
				return false
			}
			list = append(list, v)
			return true
		})
		if fault != nil {
			return nil, fault
		}
		return list, err
	case '"':
		text, ok := rawjson.String(raw)
		if !ok {
			return nil, rawjson.ErrSyntax
		}
		return text, nil
	case 't':
		return true, nil
	case 'f':
		return false, nil
	case 'n':
		return nil, nil
	}
	return decodeNumber(string(raw))
}

func decodeNumber(text string) (any, error) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, nil
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return u, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return nil, fmt.Errorf("number: %w", rawjson.ErrSyntax)
	}
	return f, nil // out of range it is infinite, and compares as what it is: larger than any number
}
