package deferred

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// maxChanges bounds a difference.
const maxChanges = 20

// difference says what is different between two input schemas, property by property, for a model
// that has read the old one.
func difference(old, now json.RawMessage) []string {
	var d differing
	d.compare("", old, now, 0)
	if len(d.changes) == 0 {
		d.changes = append(d.changes, "the schema is written differently")
	}
	if len(d.changes) > maxChanges {
		d.changes = append(d.changes[:maxChanges], "…")
	}
	return d.changes
}

type differing struct{ changes []string }

func (d *differing) say(format string, args ...any) {
	if len(d.changes) <= maxChanges {
		d.changes = append(d.changes, fmt.Sprintf(format, args...))
	}
}

func (d *differing) compare(path string, old, now json.RawMessage, depth int) {
	was, is := propertiesOf(old), propertiesOf(now)
	wasMust, isMust := requiredOf(old), requiredOf(now)
	for _, name := range was.names {
		at := path + oneLine(name, maxLiteral)
		before, after := was.values[name], is.values[name]
		switch {
		case after == nil:
			d.say("%s was removed", at)
			continue
		case !wasMust[name] && isMust[name]:
			d.say("%s is required now", at)
		case wasMust[name] && !isMust[name]:
			d.say("%s is optional now", at)
		}
		if bytes.Equal(before, after) {
			continue
		}
		from, to := typeOf(before, 0), typeOf(after, 0)
		said := len(d.changes)
		if depth < maxNested && (len(propertiesOf(before).names) > 0 || len(propertiesOf(after).names) > 0) {
			d.compare(at+".", before, after, depth+1)
		}
		switch {
		case len(d.changes) > said:
		case from != to:
			d.say("%s: %s became %s", at, from, to)
		default:
			d.say("%s is described differently", at)
		}
	}
	for _, name := range is.names {
		if was.values[name] == nil {
			optional := ", optional"
			if isMust[name] {
				optional = ", required"
			}
			d.say("%s was added: %s%s", path+oneLine(name, maxLiteral), typeOf(is.values[name], 0), optional)
		}
	}
}

// properties of an object schema, in order.
type properties struct {
	names  []string
	values map[string]json.RawMessage
}

func propertiesOf(schema json.RawMessage) properties {
	p := properties{values: make(map[string]json.RawMessage)}
	all, _ := rawjson.Get(schema, "properties")
	_ = rawjson.Members(all, func(m rawjson.Member) bool {
		name := m.Name()
		if p.values[name] == nil {
			p.names = append(p.names, name)
		}
		p.values[name] = m.Value
		return true
	})
	return p
}

func requiredOf(schema json.RawMessage) map[string]bool {
	out := make(map[string]bool)
	list, _ := rawjson.Get(schema, "required")
	_ = rawjson.Elements(list, func(e []byte) bool {
		if name, ok := rawjson.String(e); ok {
			out[name] = true
		}
		return true
	})
	return out
}
