package code

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
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
	if !exact(raw, s) {
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

// exact reports whether s is what raw, a JSON string, says: decoding puts U+FFFD for bytes that are
// not UTF-8 and for halves of surrogate pairs.
func exact(raw []byte, s string) bool {
	const replacement = "\uFFFD"
	said := bytes.Count(raw, []byte(replacement)) + bytes.Count(bytes.ToLower(raw), []byte(`\ufffd`))
	return utf8.Valid(raw) && strings.Count(s, replacement) <= said
}
