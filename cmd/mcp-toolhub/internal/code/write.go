package code

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// mostContent bounds the texts of one call, in characters.
const mostContent = 4 << 20

func (w *writer) writeFile(ctx context.Context, e *tool.Execution) (answer, error) {
	if w == nil {
		return answer{}, unknownTool(writeFile)
	}
	args := parseArguments(e.Arguments, "path", "content", "create_dirs", "overwrite")
	given := args.text("path", "", mostPath)
	content := args.whole("content", mostContent)
	if _, ok := args.members["content"]; !ok {
		args.reject(`argument "content" is missing: send the text of the file, "" for an empty one`)
	}
	makeDirs := args.boolean("create_dirs", true)
	overwrite := args.boolean("overwrite", false)
	if err := args.err(); err != nil {
		return answer{}, err
	}
	o, err := w.apply(ctx, e, &change{given: given, createDirs: makeDirs, onlyNew: !overwrite,
		make: func(_ string, before *document) (document, error) { return documentOf(content).like(before), nil }})
	if err != nil {
		return answer{}, err
	}
	return w.answer(o, "replaced", written{}), nil
}

// whole returns a string of up to most characters that can be written as it was sent; "" where it is absent.
func (a *arguments) whole(name string, most int) string {
	raw, ok := a.members[name]
	if !ok {
		return ""
	}
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		a.reject("argument %q is not a string: send a string of up to %d characters", name, most)
		return ""
	}
	switch n := utf8.RuneCountInString(*s); {
	case n > most:
		a.reject("argument %q has %d characters: send up to %d", name, n, most)
	case !exact(raw):
		a.refuse(codeNotText, "argument %q holds half of a surrogate pair or bytes that are not UTF-8, which cannot be written as they are: send text", name)
	case strings.ContainsRune(*s, 0):
		a.refuse(codeNotText, "argument %q holds a NUL character, which no text does: this tool writes text", name)
	}
	return *s
}

// exact reports whether a JSON string says which characters it stands for: decoding puts U+FFFD for bytes that are not UTF-8
// and for halves of surrogate pairs.
func exact(raw []byte) bool {
	if !utf8.Valid(raw) {
		return false
	}
	var first rune // of a pair, until the second follows
	for i := 0; i < len(raw); {
		unit, size := rune(-1), 1
		switch {
		case raw[i] != '\\':
		case raw[i+1] == 'u':
			n, err := strconv.ParseUint(string(raw[i+2:i+6]), 16, 16)
			if err != nil {
				return false
			}
			unit, size = rune(n), 6
		default:
			size = 2
		}
		i += size
		switch {
		case first != 0:
			if utf16.DecodeRune(first, unit) == utf8.RuneError {
				return false
			}
			first = 0
		case utf16.IsSurrogate(unit):
			first = unit
		}
	}
	return first == 0
}
