package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

const (
	maxTargets = 1000    // of one call; one more is a Fault
	maxGiven   = 4 << 10 // bytes of a target's text that are kept
	maxText    = 64 << 10
)

var errNoObject = errors.New("the arguments are no JSON object: send one")

// Resolve returns the targets of one call: first those of the schema's arguments, in its order,
// then those of arguments that the schema does not declare: it may allow any, or name none. It
// returns an error where arguments is no JSON object, or ctx is done.
func (p *Plan) Resolve(ctx context.Context, arguments json.RawMessage, root Root) ([]Target, error) {
	if !rawjson.Valid(arguments) || !rawjson.IsObject(arguments) {
		return nil, fmt.Errorf("resolve targets: %w", errNoObject)
	}
	r := &resolution{root: root}
	for i := range p.arguments {
		a := &p.arguments[i]
		r.walk(ctx, arguments, a, 0, "", nil)
	}
	n := nested{plan: p, resolution: r, size: len(arguments)}
	_ = rawjson.Members(arguments, func(m rawjson.Member) bool {
		if p.declared[string(m.Decoded())] && m.Value[0] != '{' && m.Value[0] != '[' {
			return !r.ended // the usual case: nothing is in it
		}
		name := m.Name()
		at := "/" + rawjson.PointerToken(name)
		if p.declared[name] || slices.ContainsFunc(p.arguments, func(a argument) bool {
			return strings.EqualFold(a.steps[0], name) // walk looks at it, in other letter case
		}) {
			n.look(ctx, m.Value, at, at, 1)
			return !r.ended
		}
		text, _ := rawjson.String(m.Value)
		if kind := facts.Undeclared(name, text); kind != "" {
			a := &argument{Argument: facts.Argument{Kind: kind, Write: p.write}}
			r.value(ctx, m.Value, a, at, []Note{Undeclared})
		} else {
			n.look(ctx, m.Value, at, at, 1)
		}
		return !r.ended
	})
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("resolve targets: %w", err)
	}
	return r.targets, nil
}

// resolution is one Resolve.
type resolution struct {
	root    Root
	targets []Target
	ended   bool // no more targets are looked for: there are too many, or ctx is done
}

// walk follows the pointer of a from value, along every member that some program could read as the
// one it names: some decoders ignore letter case.
func (r *resolution) walk(ctx context.Context, value []byte, a *argument, step int, at string, notes []Note) {
	if r.ended {
		return
	}
	if step == len(a.steps) || a.Kind == facts.ArgumentCommand && step == len(a.steps)-1 && a.steps[step] == "*" {
		r.value(ctx, value, a, at, notes)
		return
	}
	name := a.steps[step]
	if name == "*" {
		err := r.elements(value, func(i int, v []byte) { r.walk(ctx, v, a, step+1, at+"/"+strconv.Itoa(i), notes) })
		if err != nil && !rawjson.IsNull(value) {
			r.value(ctx, value, a, at, notes) // one, where several may stand
		}
		return
	}
	_ = rawjson.Members(value, func(m rawjson.Member) bool {
		own := m.Name()
		if own != name && !strings.EqualFold(own, name) {
			return true
		}
		with := notes
		if own != name {
			with = append(slices.Clone(notes), KeyVariant)
		}
		r.walk(ctx, m.Value, a, step+1, at+"/"+rawjson.PointerToken(own), with)
		return !r.ended
	})
}

// elements calls do with every element of an array and its index, for as long as the resolution goes on.
func (r *resolution) elements(array []byte, do func(i int, v []byte)) error {
	i := 0
	return rawjson.Elements(array, func(v []byte) bool {
		do(i, v)
		i++
		return !r.ended
	})
}

// value adds the targets of one value of an argument.
func (r *resolution) value(ctx context.Context, value []byte, a *argument, at string, notes []Note) {
	if rawjson.IsNull(value) {
		return
	}
	t := Target{Kind: kindOf(a.Kind), Argument: at, Write: a.Write, Notes: notes}
	text, isText := rawjson.String(value)
	switch {
	case a.Kind == facts.ArgumentCommand && !isText:
		r.add(ctx, argv(t, value))
		return
	case !isText && t.Kind == Resource && len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9'):
		text = string(value)
	case !isText && value[0] == '[':
		_ = r.elements(value, func(i int, v []byte) {
			if v[0] != '[' {
				r.value(ctx, v, a, at+"/"+strconv.Itoa(i), notes)
			}
		})
		return
	case !isText && (t.Kind == Resource || a.Kind == facts.ArgumentCode):
		text = string(value)
	case !isText:
		t.Fault = "is no text: send a string"
		r.add(ctx, t)
		return
	}
	r.text(ctx, t, a.Kind, text)
}

func kindOf(argument string) Kind {
	switch argument {
	case facts.ArgumentPath:
		return Path
	case facts.ArgumentURL, facts.ArgumentHost:
		return URL
	case facts.ArgumentCommand, facts.ArgumentCode:
		return Command
	}
	return Resource
}

// text normalises a text and adds its targets.
func (r *resolution) text(ctx context.Context, t Target, argument, text string) {
	t.Given = cut(text)
	if len(text) > maxText {
		t.Fault = "is over 64 KiB long: send a shorter one"
		r.add(ctx, t)
		return
	}
	switch argument {
	case facts.ArgumentPath:
		r.add(ctx, paths(t, text, r.root)...)
	case facts.ArgumentURL:
		r.add(ctx, urls(t, text, r.root)...)
	case facts.ArgumentHost:
		r.add(ctx, hosts(t, text)...)
	case facts.ArgumentCommand:
		r.add(ctx, shellText(t, text))
	case facts.ArgumentCode:
		t.Resolved, t.Notes = t.Given, append(slices.Clone(t.Notes), Code)
		r.add(ctx, t)
	default:
		t.Resolved = t.Given
		r.add(ctx, t)
	}
}

// cut keeps the beginning of a long text.
func cut(text string) string { return hidden.Cut(text, maxGiven) }

func (r *resolution) add(ctx context.Context, targets ...Target) {
	for _, t := range targets {
		if r.ended {
			return
		}
		if len(r.targets) == maxTargets {
			r.ended = true
			t.Fault = fmt.Sprintf("the call names over %d targets: send fewer", maxTargets)
		}
		r.targets = append(r.targets, t)
	}
	r.ended = r.ended || ctx.Err() != nil
}

// maxNested bounds the depth of pointers. A deeper value is looked at under the pointer of its
// parent, because the length of all pointers grows with the square of the depth.
const maxNested = 64

// Bounds of the bytes that are looked at: so many, or so many times what the arguments have.
const (
	leastWork = 64 << 20
	workFor   = 32
)

// nested looks at values deeper in the arguments than their schema describes: a schema may just say "an object".
type nested struct {
	plan       *Plan
	resolution *resolution
	// bytes of the arguments, and bytes looked at: whatever holds them is looked at for each level
	size, work int
	known      map[string]bool // pointers of the targets that the schema has led to; nil until they are wanted
}

// look looks through value, which stands at the pointer at; pattern is that with "*" for every element of an array.
func (n *nested) look(ctx context.Context, value []byte, at, pattern string, depth int) {
	r := n.resolution
	if len(value) == 0 || value[0] != '{' && value[0] != '[' || r.ended {
		return
	}
	if n.work += len(value); n.work > max(leastWork, workFor*n.size) {
		r.add(ctx, Target{Kind: Resource, Argument: at, Write: n.plan.write, Notes: []Note{Undeclared},
			Fault: "holds much, deep within one another: nest it less, or send less"})
		r.ended = true
		return
	}
	if value[0] == '[' {
		_ = r.elements(value, func(i int, v []byte) {
			there, like := at, pattern
			if depth < maxNested && len(v) > 0 && (v[0] == '{' || v[0] == '[') {
				there, like = at+"/"+strconv.Itoa(i), pattern+"/*"
			}
			n.look(ctx, v, there, like, depth+1)
		})
		return
	}
	_ = rawjson.Members(value, func(m rawjson.Member) bool {
		there, like := at, pattern
		if depth < maxNested {
			name := rawjson.PointerToken(m.Name())
			there, like = at+"/"+name, pattern+"/"+name
		}
		if depth >= maxNested || !n.plan.facts.Declares(like) && !n.isKnown(there) {
			n.judge(ctx, m, there)
		}
		n.look(ctx, m.Value, there, like, depth+1)
		return !r.ended
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

// judge adds the targets of a member that no schema describes, by its name or value. The member may
// be plain data. So ids are no targets, and a text without one spelling is no reason to deny: it
// only keeps a grant from covering more than this very call.
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
		_ = found.elements(m.Value, func(i int, v []byte) {
			if _, isText := rawjson.String(v); isText {
				found.value(ctx, v, a, at+"/"+strconv.Itoa(i), notes)
			}
		})
	}
	for _, t := range found.targets {
		if t.Fault != "" {
			t.Fault = ""
			t.Notes = append(slices.Clip(t.Notes), Wildcard)
		}
		n.resolution.add(ctx, t)
	}
}
