package code

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const (
	mostEdits       = 200
	mostOldText     = 1 << 20
	mostPlacesNamed = 10 // of a text that is found more than once
)

// replacement is one element of the argument edits.
type replacement struct {
	old, new string
	all      bool
}

func (w *writer) editFile(ctx context.Context, e *tool.Execution) (answer, error) {
	if w == nil {
		return answer{}, unknownTool(editFile)
	}
	args := parseArguments(e.Arguments, "path", "edits", "unified_diff", "create_if_missing")
	given := args.text("path", "", mostPath)
	edits, diff := args.edits(), args.whole("unified_diff", mostContent)
	create := args.boolean("create_if_missing", false)
	_, hasEdits := args.members["edits"]
	_, hasDiff := args.members["unified_diff"]
	if hasDiff && diff == "" {
		args.reject(`argument "unified_diff" is empty: send a unified diff`)
	}
	if hasEdits == hasDiff {
		args.refuse(codeEditForm, `send either "edits" or "unified_diff", and not both`)
	}
	if err := args.err(); err != nil {
		return answer{}, err
	}
	var facts written
	o, err := w.apply(ctx, e, &change{given: given, make: func(path string, before *document) (document, error) {
		old := document{}
		switch {
		case before == nil && !create:
			return old, failure(tool.ClassExecutionFailed, codeFileNotFound,
				"there is no %q: look for the right path with list_dir or search, or set create_if_missing", clip(given, 200))
		case before != nil && before.binary:
			return old, invalid(codeBinaryFile, "%q is not text in UTF-8: this tool changes text only", clip(given, 200))
		case before != nil:
			old = *before
		}
		var err error
		if hasDiff {
			p := patch{text: diff, isNew: before == nil, names: []string{given, w.show(path), path}}
			old, facts.Hunks, err = p.apply(old)
			return old, err
		}
		old, facts.Replacements, err = replaceAll(old, edits)
		return old, err
	}})
	if err != nil {
		return answer{}, err
	}
	return w.answer(o, "edited", facts), nil
}

// edits returns the argument edits, or nothing where it is absent.
func (a *arguments) edits() []replacement {
	raw, ok := a.members["edits"]
	if !ok {
		return nil
	}
	var list []json.RawMessage
	if rawjson.IsNull(raw) || json.Unmarshal(raw, &list) != nil || len(list) < 1 || len(list) > mostEdits {
		a.reject(`argument "edits" is not a list of 1 to %d objects: send a list of {"old", "new"}`, mostEdits)
		return nil
	}
	out := make([]replacement, 0, len(list))
	for i, one := range list {
		m := parseArguments(one, "old", "new", "replace_all")
		r := replacement{old: m.whole("old", mostOldText), new: m.whole("new", mostOldText), all: m.boolean("replace_all", false)}
		for _, name := range []string{"old", "new"} {
			if _, ok := m.members[name]; !ok {
				m.reject("argument %q is missing: send a string", name)
			}
		}
		if m.fault != nil && a.fault == nil {
			a.fault = invalid(m.fault.Code, "edits[%d]: %s", i, m.fault.Message)
		}
		out = append(out, r)
	}
	return out
}

// span is a part of a text that is replaced.
type span struct {
	from, to int
	edit     int // number of the replacement
}

// replaceAll replaces as edits say, all of which are about the text as it is now, and returns how many places it replaced.
// It replaces nothing where any of them does not fit.
func replaceAll(d document, edits []replacement) (document, int, error) {
	edits = slices.Clone(edits)
	var spans []span
	for i := range edits {
		r := &edits[i]
		if d.crlf { // the body has none of its own
			r.old, r.new = toLF(r.old), toLF(r.new)
		}
		found, err := r.find(d.body, i, len(edits))
		if err != nil {
			return d, 0, err
		}
		spans = append(spans, found...)
	}
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	size := len(d.body)
	for i, s := range spans {
		size += len(edits[s.edit].new) - (s.to - s.from)
		if i > 0 && s.from < spans[i-1].to {
			return d, 0, failure(tool.ClassExecutionFailed, codeOverlapping,
				"edits[%d] and edits[%d] overlap in line %d, so that nothing was written: join them into one edit",
				min(s.edit, spans[i-1].edit), max(s.edit, spans[i-1].edit), lineAt(d.body, s.from))
		}
	}
	if size > mostFileBytes {
		return d, 0, invalid(codeTooLarge, "the file would have over %d bytes: replace less", mostFileBytes)
	}
	var b strings.Builder
	b.Grow(size)
	at := 0
	for _, s := range spans {
		b.WriteString(d.body[at:s.from])
		b.WriteString(edits[s.edit].new)
		at = s.to
	}
	b.WriteString(d.body[at:])
	d.body = b.String()
	return d, len(spans), nil
}

// find returns the places of replacement i of n in body.
func (r *replacement) find(body string, i, n int) ([]span, error) {
	switch {
	case r.old == "" && body == "" && n == 1 && r.new != "":
		return []span{{0, 0, i}}, nil
	case r.old == "":
		return nil, invalid(codeEmptyOld, `edits[%d]: "old" is empty, which names no place in a file that has text: send the text to replace`, i)
	case r.old == r.new:
		return nil, invalid(codeNoChange, `edits[%d]: "old" and "new" are the same: leave it out`, i)
	}
	places := occurrences(body, r.old, r.all)
	switch {
	case len(places) == 0:
		return nil, failure(tool.ClassExecutionFailed, codeNotFound, `edits[%d]: "old" is not in the file, so that nothing was `+
			"written: read the file and send the text exactly as it is there, spaces and line endings included", i)
	case len(places) > 1 && !r.all:
		return nil, failure(tool.ClassExecutionFailed, codeAmbiguous, `edits[%d]: "old" is in the file more than once (lines %s), `+
			"so that nothing was written: send more of the text around it, or set replace_all", i, linesOf(body, places))
	}
	spans := make([]span, len(places))
	for n, at := range places {
		spans[n] = span{at, at + len(r.old), i}
	}
	return spans, nil
}

// occurrences returns where text is in body: apart from each other where each is to be replaced; otherwise also those that
// overlap, and no more than are worth naming.
func occurrences(body, text string, apart bool) []int {
	var places []int
	for at := 0; apart || len(places) <= mostPlacesNamed; {
		next := strings.Index(body[at:], text)
		if next < 0 {
			break
		}
		places = append(places, at+next)
		at += next + 1
		if apart {
			at += len(text) - 1
		}
	}
	return places
}

func linesOf(body string, places []int) string {
	var names []string
	for _, at := range places[:min(len(places), mostPlacesNamed)] {
		names = append(names, fmt.Sprint(lineAt(body, at)))
	}
	if len(places) > mostPlacesNamed {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

// lineAt is the number of the line that holds body[at].
func lineAt(body string, at int) int { return strings.Count(body[:at], "\n") + 1 }
