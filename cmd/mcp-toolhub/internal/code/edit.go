package code

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const (
	mostPlacesNamed = 10 // of a text that is found more than once
)

// replacement is one element of the argument edits.
type replacement struct {
	Old, New wholeText
	All      bool `json:"replace_all"`
}

func (w *writer) editFile(ctx context.Context, e *tool.Execution) (answer, error) {
	args := struct {
		Path   string
		Edits  []replacement
		Diff   wholeText `json:"unified_diff"`
		Create bool      `json:"create_if_missing"`
	}{}
	if err := readArguments(e, &args); err != nil {
		return answer{}, err
	}
	given, create, diff := args.Path, args.Create, string(args.Diff)
	if hasEdits := len(args.Edits) > 0; hasEdits == (diff != "") {
		return answer{}, invalid(codeEditForm, `send either "edits" or "unified_diff", and not both`)
	}
	var facts written
	o, err := w.apply(ctx, e, &change{given: given, make: func(path string, before *document) (document, error) {
		old := document{}
		switch {
		case before == nil && !create:
			return old, failure(tool.ClassExecutionFailed, codeFileNotFound,
				"there is no %q: look for the right path with list_dir or search, or set create_if_missing",
				hidden.Cut(given, 200))
		case before != nil && before.binary:
			return old, invalid(codeBinaryFile, "%q is not text in UTF-8: this tool changes text only",
				hidden.Cut(given, 200))
		case before != nil:
			old = *before
		}
		var err error
		if diff != "" {
			p := patch{text: diff, isNew: before == nil, names: []string{given, w.show(path), path}}
			old, facts.Hunks, err = p.apply(old)
			return old, err
		}
		old, facts.Replacements, err = replaceAll(old, args.Edits)
		return old, err
	}})
	if err != nil {
		return answer{}, err
	}
	return w.answer(o, "edited", facts), nil
}

// span is a part of a text that is replaced.
type span struct {
	from, to int
	edit     int // number of the replacement
}

// replaceAll replaces as edits say, all of which are about the text as it is now, and returns how
// many places it replaced. It replaces nothing where any of them does not fit.
func replaceAll(d document, edits []replacement) (document, int, error) {
	edits = slices.Clone(edits)
	var spans []span
	for i := range edits {
		r := &edits[i]
		if d.crlf { // the body has none of its own
			r.Old, r.New = wholeText(toLF(string(r.Old))), wholeText(toLF(string(r.New)))
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
		size += len(edits[s.edit].New) - (s.to - s.from)
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
		b.WriteString(string(edits[s.edit].New))
		at = s.to
	}
	b.WriteString(d.body[at:])
	d.body = b.String()
	return d, len(spans), nil
}

// find returns the places of replacement i of n in body.
func (r *replacement) find(body string, i, n int) ([]span, error) {
	switch {
	case r.Old == "" && body == "" && n == 1 && r.New != "":
		return []span{{0, 0, i}}, nil
	case r.Old == "":
		return nil, invalid(codeEmptyOld,
			`edits[%d]: "old" is empty, which names no place in a file that has text: send the text to replace`, i)
	case r.Old == r.New:
		return nil, invalid(codeNoChange, `edits[%d]: "old" and "new" are the same: leave it out`, i)
	}
	places := occurrences(body, string(r.Old), r.All)
	switch {
	case len(places) == 0:
		return nil, failure(tool.ClassExecutionFailed, codeNotFound,
			`edits[%d]: "old" is not in the file, so that nothing was `+
				"written: read the file and send the text exactly as it is there, spaces and line endings included", i)
	case len(places) > 1 && !r.All:
		return nil, failure(tool.ClassExecutionFailed, codeAmbiguous,
			`edits[%d]: "old" is in the file more than once (lines %s), `+
				"so that nothing was written: send more of the text around it, or set replace_all", i,
			linesOf(body, places))
	}
	spans := make([]span, len(places))
	for n, at := range places {
		spans[n] = span{at, at + len(r.Old), i}
	}
	return spans, nil
}

// occurrences returns where text is in body: apart from each other where each is to be replaced;
// otherwise also those that overlap, and no more than are worth naming.
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
