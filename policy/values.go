package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// errTwice refuses an object that has a member twice, also in another letter case. The hub and the tool's server could each
// read another of the two, and a rule would judge a call that does not happen.
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
	return decodeMembers(raw)
}

func decodeMembers(raw []byte) (map[string]any, error) {
	const few = 8
	m := make(map[string]any)
	var fault error
	var seen map[string]bool // folded names, where there are more than few
	err := rawjson.Members(raw, func(member rawjson.Member) bool {
		var v any
		if v, fault = decodeValue(member.Value); fault != nil {
			return false
		}
		name := member.Name()
		if len(m) == few && seen == nil {
			seen = make(map[string]bool)
			for known := range m {
				seen[fold(known)] = true
			}
		}
		if seen != nil {
			folded := fold(name)
			if seen[folded] {
				fault = errTwice
			}
			seen[folded] = true
		} else {
			for known := range m {
				if strings.EqualFold(known, name) {
					fault = errTwice
				}
			}
		}
		m[name] = v
		return fault == nil
	})
	if fault != nil {
		return nil, fault
	}
	return m, err
}

// fold makes two names equal if strings.EqualFold does.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return least
	}, name)
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
