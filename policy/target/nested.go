package target

import (
	"context"
	"slices"
	"strconv"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// maxNested is how deep pointers go: what stands deeper is looked at under that of what holds it, for their length would
// grow with the square of the depth.
const maxNested = 64

// Bounds of the bytes that are looked at: so many, or so many times what the arguments have.
const (
	leastWork = 64 << 20
	workFor   = 32
)

// nested looks at what stands deeper in the arguments than their schema says: a schema may say "an object", and no more.
type nested struct {
	plan       *Plan
	resolution *resolution
	size, work int             // bytes of the arguments, and bytes looked at: whatever holds them is looked at for each level
	known      map[string]bool // pointers of the targets that the schema has led to; nil until they are wanted
}

// look looks through value, which stands at the pointer at; pattern is that with "*" for every element of an array.
func (n *nested) look(ctx context.Context, value []byte, at, pattern string, depth int) {
	r := n.resolution
	if len(value) == 0 || value[0] != '{' && value[0] != '[' || r.err != nil || r.full {
		return
	}
	if n.work += len(value); n.work > max(leastWork, workFor*n.size) {
		r.add(ctx, Target{Kind: Resource, Argument: at, Write: n.plan.write, Notes: []Note{Undeclared},
			Fault: "holds much, deep within one another: nest it less, or send less"})
		r.full = true
		return
	}
	if value[0] == '[' {
		i := 0
		_ = rawjson.Elements(value, func(v []byte) bool {
			there, like := at, pattern
			if depth < maxNested && len(v) > 0 && (v[0] == '{' || v[0] == '[') {
				there, like = at+"/"+strconv.Itoa(i), pattern+"/*"
			}
			n.look(ctx, v, there, like, depth+1)
			i++
			return r.err == nil && !r.full
		})
		return
	}
	_ = rawjson.Members(value, func(m rawjson.Member) bool {
		there, like := at, pattern
		if depth < maxNested {
			name := escape(m.Name())
			there, like = at+"/"+name, pattern+"/"+name
		}
		if depth >= maxNested || !n.plan.facts.Declares(like) && !n.isKnown(there) {
			n.judge(ctx, m, there)
		}
		n.look(ctx, m.Value, there, like, depth+1)
		return r.err == nil && !r.full
	})
}

func (n *nested) isKnown(at string) bool {
	if n.known == nil {
		n.known = make(map[string]bool)
		for i := range n.resolution.targets {
			n.known[n.resolution.targets[i].Argument] = true
		}
	}
	return n.known[at]
}

// judge adds the targets that a member which no schema describes is by its name, or by how it reads. It may be plain data:
// so ids are none, and what has no one spelling is no reason to deny, only one to remember no more than this very call.
func (n *nested) judge(ctx context.Context, m rawjson.Member, at string) {
	text, isText := rawjson.String(m.Value)
	kind := facts.Undeclared(m.Name(), text)
	if byKey := facts.Undeclared("", m.Name()); byKey != "" { // a map from paths or addresses to something
		m.Value, kind, isText = rawjson.Quote(m.Name()), byKey, true
	}
	if kind == "" || kind == facts.ArgumentResource {
		return
	}
	found := &resolution{root: n.resolution.root}
	a := &argument{Argument: facts.Argument{Kind: kind, Write: n.plan.write}}
	notes := []Note{Undeclared}
	switch {
	case isText, kind == facts.ArgumentCommand && m.Value[0] == '[':
		found.value(ctx, m.Value, a, at, notes)
	case m.Value[0] == '[':
		i := 0
		_ = rawjson.Elements(m.Value, func(v []byte) bool {
			if _, isText := rawjson.String(v); isText {
				found.value(ctx, v, a, at+"/"+strconv.Itoa(i), notes)
			}
			i++
			return found.err == nil && !found.full
		})
	}
	for _, t := range found.targets {
		if t.Fault != "" {
			t.Fault = ""
			t.Notes = append(slices.Clip(t.Notes), Wildcard)
		}
		n.resolution.add(ctx, t)
	}
	if found.err != nil {
		n.resolution.err = found.err
	}
}
