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

func (w *writer) writeFile(ctx context.Context, e *tool.Execution) (answer, error) {
	args := struct {
		Path       string
		Content    wholeText
		CreateDirs bool `json:"create_dirs"`
		Overwrite  bool
	}{CreateDirs: true}
	if err := readArguments(e, &args); err != nil {
		return answer{}, err
	}
	o, err := w.apply(ctx, e, &change{given: args.Path, createDirs: args.CreateDirs, onlyNew: !args.Overwrite,
		make: func(_ string, before *document) (document, error) {
			return documentOf(string(args.Content)).like(before), nil
		}})
	if err != nil {
		return answer{}, err
	}
	return w.answer(o, "replaced", written{}), nil
}

// wholeText is a string that can be written as it was sent. Its faults are *tool.Failure.
type wholeText string

func (w *wholeText) UnmarshalJSON(raw []byte) error {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	if !exact(raw) {
		return invalid(codeNotText,
			"a text holds half of a surrogate pair or bytes that are not UTF-8, which cannot be written as they "+
				"are: send text")
	}
	if strings.ContainsRune(s, 0) {
		return invalid(codeNotText, "a text holds a NUL character, which no text does: this tool writes text")
	}
	*w = wholeText(s)
	return nil
}

// exact reports whether a JSON string says which characters it stands for: decoding puts U+FFFD for
// bytes that are not UTF-8 and for halves of surrogate pairs.
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
