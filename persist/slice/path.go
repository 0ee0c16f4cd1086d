package slice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/theory/jsonpath"
	"github.com/theory/jsonpath/registry"
	"github.com/theory/jsonpath/spec"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// Bounds of what a path may do.
const (
	maxWork = 4 << 30  // bytes that it goes through
	maxRoot = 16 << 20 // bytes of a document whose $ a filter may name
)

// path answers with the values that a JSONPath selects, in the order of RFC 9535: for each a line
// with its JSON pointer, a colon, and the value as it is written.
func (p *page) path(ctx context.Context) (Answer, error) {
	if err := p.doc.needJSON("path"); err != nil {
		return Answer{}, err
	}
	parsed, err := jsonpath.NewParser(jsonpath.WithRegistry(functions())).Parse(p.request.Path)
	if err != nil {
		return Answer{}, faultf("%s is no JSONPath of RFC 9535, such as $.items[*].name: correct it (%s).",
			quoted(p.request.Path),
			shorten(err.Error(), 200))
	}
	segments, err := prepare(parsed, p.doc)
	if err != nil {
		return Answer{}, err
	}
	n, full := 0, false
	first := p.state.at
	w := walker{selected: func(value, pointer []byte) bool {
		if n++; p.request.Count || n <= first {
			return true
		}
		item := append(append(append([]byte(nil), pointer...), ": "...), value...)
		full = !p.take(append(item, '\n'))
		return !full
	}}
	i := rawjson.SkipSpace(p.doc.data, 0)
	err = w.walk(ctx, p.doc.data[i:rawjson.SkipValue(p.doc.data, i)], segments)
	if err != nil && !errors.Is(err, errEnough) {
		return Answer{}, err
	}
	if p.request.Count {
		a := Answer{Data: []byte(`{"values":` + strconv.Itoa(n) + `}`)}
		p.finish(&a, "The counts", state{}, false)
		return a, nil
	}
	a := Answer{Data: p.out}
	what := "Nothing"
	if n > first {
		what = "Values " + strconv.Itoa(first+1) + "-" + strconv.Itoa(n) + " that the path selects"
	}
	next := p.state
	if next.at = n; full {
		next.at-- // the last one is not whole, or not there at all
	}
	p.finish(&a, what, next, full)
	return a, nil
}

// functions are those of RFC 9535. The library's match and search panic where an argument selects
// nothing; these are false there, as the RFC has it.
func functions() *registry.Registry {
	all := registry.New()
	for _, name := range []string{"match", "search"} {
		theirs := all.Get(name)
		was := *theirs
		*theirs = *spec.Extension(name, was.ReturnType(), was.Validate, func(args []spec.PathValue) spec.PathValue {
			for _, a := range args {
				if v, ok := a.(*spec.ValueType); a == nil || ok && v == nil {
					return spec.LogicalFalse
				}
			}
			return was.Evaluate(args)
		})
	}
	return all
}

// holds reports whether a filter holds for a value. A library that panics on what a stranger wrote
// must not end the hub.
func holds(filter *spec.FilterSelector, value []byte, root any) (is bool, err error) {
	defer func() {
		if recover() != nil {
			err = InputError("The filter of path cannot be evaluated here: use a simpler one.")
		}
	}()
	return filter.Eval(decoded(value), root), nil
}

// errEnough ends a walk whose page is full.
var errEnough = errors.New("the page is full")

// segment is one segment of a path.
type segment struct {
	selectors []spec.Selector
	deep      bool
	root      any // for filters that name $
}

// prepare checks what a path costs, and decodes the document for filters that name its root.
func prepare(path *jsonpath.Path, d document) ([]segment, error) {
	var segments []segment
	var root any
	deep := 0
	for _, s := range path.Query().Segments() {
		at := segment{selectors: s.Selectors(), deep: s.IsDescendant()}
		if at.deep {
			deep++
		}
		for _, selector := range at.selectors {
			filter, ok := selector.(*spec.FilterSelector)
			if !ok {
				continue
			}
			text := filter.String()
			if strings.Count(text, "..") > 1 || strings.Count(text, "?") > 4 {
				return nil, InputError("A filter of path may have one .. and few filters within: use a simpler one.")
			}
			if root == nil && strings.Contains(text, "$") {
				if len(d.data) > maxRoot {
					return nil,
						faultf("A filter can name $ in up to %d bytes of JSON, and %s has %d: use @, or give "+
							"pointer, too.",
							maxRoot, d.name, len(d.data))
				}
				root = decoded(d.data)
			}
		}
		segments = append(segments, at)
	}
	for i := range segments {
		segments[i].root = root
	}
	return segments, nil
}

// decoded is the value as the library takes it, with numbers as they are written.
func decoded(value []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	var v any
	_ = decoder.Decode(&v) // it was checked
	return v
}

// walker applies the segments of a path to the bytes of a document, depth first: the order is that of RFC 9535, and
// nothing is decoded but what a filter looks at.
type walker struct {
	pointer  []byte // of the value at hand
	work     int    // bytes that it went through
	checked  int    // work when ctx was last looked at
	selected func(value, pointer []byte) (goOn bool)
}

// walk applies the segments to one value.
func (w *walker) walk(ctx context.Context, value []byte, segments []segment) error {
	if len(segments) == 0 {
		if !w.selected(value, w.pointer) {
			return errEnough
		}
		return nil
	}
	s := &segments[0]
	for _, selector := range s.selectors {
		if err := w.choose(ctx, value, selector, s.root, segments[1:]); err != nil {
			return err
		}
	}
	if !s.deep {
		return nil
	}
	return w.each(ctx, value, func(child []byte) error { return w.walk(ctx, child, segments) })
}

// choose walks on from what one selector selects of a value.
func (w *walker) choose(ctx context.Context, value []byte, selector spec.Selector, root any, rest []segment) error {
	switch selector := selector.(type) {
	case spec.Name:
		found, ok := rawjson.Get(value, string(selector))
		if err := w.spend(ctx, len(value)); err != nil || !ok {
			return err
		}
		before := len(w.pointer)
		w.pointer = appendToken(w.pointer, string(selector))
		err := w.walk(ctx, found, rest)
		w.pointer = w.pointer[:before]
		return err
	case spec.Index:
		return w.elements(ctx, value, rest, func(n int) (first, end, step int) {
			i := int(selector)
			if i < 0 {
				i += n
			}
			if i < 0 || i >= n {
				return 0, 0, 1
			}
			return i, i + 1, 1
		})
	case spec.SliceSelector:
		return w.elements(ctx, value, rest, func(n int) (first, end, step int) {
			low, high := selector.Bounds(n)
			if selector.Step() < 0 {
				return high, low, selector.Step()
			}
			return low, high, selector.Step()
		})
	case spec.WildcardSelector:
		return w.each(ctx, value, func(child []byte) error { return w.walk(ctx, child, rest) })
	case *spec.FilterSelector:
		return w.each(ctx, value, func(child []byte) error {
			if is, err := holds(selector, child, root); err != nil || !is {
				return err
			}
			return w.walk(ctx, child, rest)
		})
	}
	return faultf("path has a selector that is not known here, %s: use another one.", quoted(selector.String()))
}

// each visits the members or elements of a value in order, with the pointer at each.
func (w *walker) each(ctx context.Context, value []byte, visit func(child []byte) error) error {
	err := w.spend(ctx, len(value))
	if err != nil {
		return err
	}
	before := len(w.pointer)
	switch value[0] {
	case '{':
		_ = rawjson.Members(value, func(m rawjson.Member) bool {
			w.pointer = appendToken(w.pointer, m.Name())
			err = visit(m.Value)
			w.pointer = w.pointer[:before]
			return err == nil
		})
	case '[':
		i := 0
		_ = rawjson.Elements(value, func(element []byte) bool {
			w.pointer = strconv.AppendInt(append(w.pointer, '/'), int64(i), 10)
			err = visit(element)
			w.pointer = w.pointer[:before]
			i++
			return err == nil
		})
	}
	return err
}

// elements walks on from some elements of an array, which bounds names once it knows how many there are.
func (w *walker) elements(ctx context.Context, value []byte, rest []segment,
	bounds func(n int) (first, end, step int)) error {
	if value[0] != '[' {
		return nil
	}
	if err := w.spend(ctx, len(value)); err != nil {
		return err
	}
	var all [][]byte
	_ = rawjson.Elements(value, func(element []byte) bool {
		all = append(all, element)
		return true
	})
	first, end, step := bounds(len(all))
	before := len(w.pointer)
	for i := first; step > 0 && i < end || step < 0 && i > end; i += step {
		w.pointer = strconv.AppendInt(append(w.pointer, '/'), int64(i), 10)
		err := w.walk(ctx, all[i], rest)
		w.pointer = w.pointer[:before]
		if err != nil {
			return err
		}
		if (step > 0 && i > math.MaxInt-step) || (step < 0 && i < math.MinInt-step) {
			break
		}
	}
	return nil
}

// spend counts work of n bytes, and ends a walk that takes too much, or that nobody waits for.
func (w *walker) spend(ctx context.Context, n int) error {
	w.work += n + 64
	if w.work-w.checked < 1<<20 {
		return nil
	}
	w.checked = w.work
	if w.work > maxWork {
		return InputError("The path goes through too many values: use fewer .. and *, or give pointer, too, to " +
			"begin deeper.")
	}
	return ctx.Err()
}

// appendToken appends the reference token of a name to a JSON pointer.
func appendToken(pointer []byte, name string) []byte {
	pointer = append(pointer, '/')
	for i := range len(name) {
		switch name[i] {
		case '~':
			pointer = append(pointer, "~0"...)
		case '/':
			pointer = append(pointer, "~1"...)
		default:
			pointer = append(pointer, name[i])
		}
	}
	return pointer
}
