package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// Bounds of a number. The library turns numbers into exact fractions, so 1e1000000 would cost megabytes and seconds.
const (
	maxDigits   = 4096
	maxExponent = 1024 // beyond what a 64-bit float holds
)

// textStats counts what is in a JSON text, for bounds that hold before it is decoded.
type textStats struct {
	depth   int
	values  int  // upper bound
	schemas int  // objects and booleans
	tooBig  bool // a number is out of bounds
	beyond  bool // a number is beyond a 64-bit float
}

// measure reads text in one pass. It does not recurse, and text need not be valid JSON.
func measure(text []byte) textStats {
	c := textStats{values: 1}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '"':
			i = rawjson.SkipString(text, i) - 1
		case b == '{', b == '[':
			depth++
			c.values++
			c.depth = max(c.depth, depth)
			if b == '{' {
				c.schemas++
			}
		case b == '}', b == ']':
			depth--
		case b == ',':
			c.values++
		case b == 't', b == 'f':
			c.schemas++
			i += len("rue") // never past a bracket in valid JSON
		case b == '-', '0' <= b && b <= '9':
			end := i + 1
			for end < len(text) && strings.IndexByte("0123456789.eE+-", text[end]) >= 0 {
				end++
			}
			tooBig, beyond := outOfBounds(text[i:end])
			c.tooBig, c.beyond = c.tooBig || tooBig, c.beyond || beyond
			i = end - 1
		}
	}
	return c
}

// outOfBounds reports whether a number is too big, and whether decoding it into a 64-bit float fails. Clients decode
// schemas so.
func outOfBounds(number []byte) (tooBig, beyond bool) {
	if len(number) < 5 {
		return false, false
	}
	digits := len(number)
	if at := bytes.IndexAny(number, "eE"); at >= 0 {
		n, err := strconv.Atoi(string(number[at+1:]))
		digits, tooBig = at, err != nil || n > maxExponent || n < -maxExponent
	}
	if digits < len(number) || digits >= 300 {
		_, err := strconv.ParseFloat(string(number), 64)
		beyond = errors.Is(err, strconv.ErrRange)
	}
	return tooBig || digits > maxDigits, beyond
}

// checkBounds measures raw, and fails where it is out of bounds.
func checkBounds(raw json.RawMessage) (c textStats, err error) {
	if len(raw) > MaxBytes {
		return c, fmt.Errorf("it has %d bytes, more than %d: shorten it", len(raw), MaxBytes)
	}
	c = measure(raw)
	switch {
	case c.depth > MaxDepth:
		return c, fmt.Errorf("it nests %d levels deep, more than %d: flatten it, or use $ref", c.depth, MaxDepth)
	case c.schemas > maxSchemas:
		return c, fmt.Errorf("it has %d subschemas, more than %d: shorten it", c.schemas, maxSchemas)
	case c.values > maxValues:
		return c, fmt.Errorf("it has %d values, more than %d: shorten it", c.values, maxValues)
	case c.tooBig, c.beyond:
		return c, errors.New("it holds a number beyond a 64-bit float: use a smaller one")
	}
	return c, nil
}

// decodeSchema decodes raw with its numbers as written, once it is known to be within the bounds.
func decodeSchema(raw json.RawMessage) (any, error) {
	c, err := checkBounds(raw)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, errors.New("it is not valid JSON: correct it")
	}
	switch doc.(type) {
	case map[string]any, bool:
	default:
		return nil, errors.New("it is neither an object nor a boolean: declare an object")
	}
	if nestedRecursion(doc) {
		return nil, errors.New("it has a $recursiveAnchor below its root: use $ref instead")
	}
	references, ids := countLinks(doc)
	if references*c.schemas > maxReferences || ids*c.schemas > maxIDs {
		return nil, fmt.Errorf("it has %d references and %d identifiers among %d subschemas, more than can be "+
			"resolved: shorten it",
			references, ids, c.schemas)
	}
	return doc, nil
}

// eachObject calls f with every object of doc and the names and indexes that lead to it. f must not keep path.
func eachObject(doc any, path []string, f func(path []string, object map[string]any)) {
	switch v := doc.(type) {
	case map[string]any:
		f(path, v)
		for name, value := range v {
			eachObject(value, append(path, name), f)
		}
	case []any:
		for i, value := range v {
			eachObject(value, append(path, strconv.Itoa(i)), f)
		}
	}
}

// countLinks counts the members that make the compiler search: it looks at all subschemas for each of them.
func countLinks(doc any) (references, ids int) {
	eachObject(doc, nil, func(_ []string, object map[string]any) {
		for name, value := range object {
			if _, text := value.(string); !text {
				continue
			}
			switch name {
			case "$ref", "$dynamicRef", "$recursiveRef":
				references++
			case "$id", "id":
				ids++
			}
		}
	})
	return references, ids
}

// dynamicAnchors returns the pointers, escaped for a URL fragment, to the objects of doc that have a $dynamicAnchor.
func dynamicAnchors(doc any) (found []string) {
	eachObject(doc, nil, func(path []string, object map[string]any) {
		if _, ok := object["$dynamicAnchor"].(string); ok {
			at := ""
			for _, token := range path {
				at += "/" + url.PathEscape(rawjson.PointerToken(token))
			}
			found = append(found, at)
		}
	})
	return found
}

// nestedRecursion reports a $recursiveAnchor elsewhere than at the root. The library then resolves $recursiveRef to
// schemas that cannot be told beforehand, so that the work of a validation could not be bounded.
func nestedRecursion(doc any) (found bool) {
	eachObject(doc, nil, func(path []string, object map[string]any) {
		on, _ := object["$recursiveAnchor"].(bool)
		found = found || on && len(path) > 0
	})
	return found
}

// dropEmptyEnums removes each empty enum of doc and counts them. Older drafts rule it out, and servers build it from
// lists that happen to be empty; the rest of such a schema is worth having.
func dropEmptyEnums(doc any) (dropped int) {
	switch v := doc.(type) {
	case map[string]any:
		if list, ok := v["enum"].([]any); ok && len(list) == 0 {
			delete(v, "enum")
			dropped++
		}
		for name, value := range v {
			// these are data, not schemas
			if name != "enum" && name != "const" && name != "default" && name != "examples" {
				dropped += dropEmptyEnums(value)
			}
		}
	case []any:
		for _, value := range v {
			dropped += dropEmptyEnums(value)
		}
	}
	return dropped
}
