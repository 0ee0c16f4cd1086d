package slice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/theory/jsonpath"
	"github.com/theory/jsonpath/spec"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/persist/preview"
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
	parsed, err := jsonpath.Parse(p.request.Path)
	if err != nil {
		return Answer{}, faultf("%s is no JSONPath of RFC 9535, such as $.items[*].name: correct it (%s).",
			quoted(p.request.Path), shorten(err.Error(), 200))
	}
	segments, err := prepare(parsed, p.doc)
	if err != nil {
		return Answer{}, err
	}
	n := 0
	w := walker{selected: func(value []byte, at string) (goOn bool) {
		if n++; !p.request.Count {
			p.item(append(append([]byte(at+": "), value...), '\n'))
		}
		return !p.full
	}}
	i := rawjson.SkipSpace(p.doc.data, 0)
	err = w.walk(ctx, p.doc.data[i:rawjson.SkipValue(p.doc.data, i)], "", segments)
	if err != nil && !errors.Is(err, errEnough) {
		return Answer{}, err
	}
	switch {
	case p.request.Count:
		return p.counted(`{"values":` + strconv.Itoa(n) + `}`), nil
	case n <= p.first:
		return p.items("Nothing"), nil
	}
	return p.items("Values " + strconv.Itoa(p.first+1) + "-" + strconv.Itoa(n) + " that the path selects"), nil
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

// walker applies the segments of a path to the bytes of a document, depth first: the order is that
// of RFC 9535, and nothing is decoded but what a filter looks at.
type walker struct {
	work     int // bytes that it went through
	checked  int // work when ctx was last looked at
	selected func(value []byte, at string) (goOn bool)
}

// walk applies the segments to the value at a JSON pointer.
func (w *walker) walk(ctx context.Context, value []byte, at string, segments []segment) error {
	if len(segments) == 0 {
		if !w.selected(value, at) {
			return errEnough
		}
		return nil
	}
	s := &segments[0]
	for _, selector := range s.selectors {
		if err := w.choose(ctx, value, at, selector, s.root, segments[1:]); err != nil {
			return err
		}
	}
	if !s.deep {
		return nil
	}
	return w.each(ctx, value, at, func(child []byte, at string) error { return w.walk(ctx, child, at, segments) })
}

// choose walks on from what one selector selects of a value.
func (w *walker) choose(ctx context.Context, value []byte, at string, selector spec.Selector, root any,
	rest []segment) error {
	switch selector := selector.(type) {
	case spec.Name:
		found, ok := rawjson.Get(value, string(selector))
		if err := w.spend(ctx, len(value)); err != nil || !ok {
			return err
		}
		return w.walk(ctx, found, preview.Pointer(at, string(selector)), rest)
	case spec.Index, spec.SliceSelector:
		return w.elements(ctx, value, at, selector, rest)
	case spec.WildcardSelector:
		return w.each(ctx, value, at, func(child []byte, at string) error { return w.walk(ctx, child, at, rest) })
	case *spec.FilterSelector:
		return w.each(ctx, value, at, func(child []byte, at string) error {
			if is, err := holds(selector, child, root); err != nil || !is {
				return err
			}
			return w.walk(ctx, child, at, rest)
		})
	}
	return faultf("path has a selector that is not known here, %s: use another one.", quoted(selector.String()))
}

// each visits the members or elements of a value in order, with the pointer to each.
func (w *walker) each(ctx context.Context, value []byte, at string, visit func(child []byte, at string) error) error {
	err := w.spend(ctx, len(value))
	if err != nil {
		return err
	}
	switch value[0] {
	case '{':
		_ = rawjson.Members(value, func(m rawjson.Member) bool {
			err = visit(m.Value, preview.Pointer(at, m.Name()))
			return err == nil
		})
	case '[':
		i := 0
		_ = rawjson.Elements(value, func(element []byte) bool {
			err = visit(element, at+"/"+strconv.Itoa(i))
			i++
			return err == nil
		})
	}
	return err
}

// elements walks on from the elements of an array that an index or a slice selects.
func (w *walker) elements(ctx context.Context, value []byte, at string, selector spec.Selector, rest []segment) error {
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
	n := len(all)
	first, end, step := 0, 0, 1
	switch selector := selector.(type) {
	case spec.Index:
		i := int(selector)
		if i < 0 {
			i += n
		}
		if i >= 0 && i < n {
			first, end = i, i+1
		}
	case spec.SliceSelector:
		step = max(-n-1, min(n+1, selector.Step())) // a longer one selects the same
		if first, end = selector.Bounds(n); step < 0 {
			first, end = end, first
		}
	}
	for i := first; step > 0 && i < end || step < 0 && i > end; i += step {
		if err := w.walk(ctx, all[i], at+"/"+strconv.Itoa(i), rest); err != nil {
			return err
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
