package slice

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// InputSchema is what a request may hold, as JSON Schema: the input schema of a tool.
const InputSchema = `{"type":"object","properties":{` +
	`"id":{"type":"string"},` +
	`"block":{"type":"integer","minimum":0,"description":"A content block, from 1; 0: the whole result as JSON."},` +
	`"pointer":{"type":"string","description":"A JSON pointer, as /items/3."},` +
	`"lines":{"type":"string","description":"From 1: 41-80, 41- or, the last, -20."},` +
	`"bytes":{"type":"string","description":"From 0: 0-4095, 4096- or -100."},` +
	`"path":{"type":"string","description":"A JSONPath, as $.items[?@.state=='open'].name."},` +
	`"grep":{"type":"string","description":"RE2: the lines that match."},` +
	`"context":{"type":"integer","minimum":0,"maximum":100,"description":"Lines around each match."},` +
	`"count":{"type":"boolean","description":"Only count matches of grep or path."},` +
	`"describe":{"type":"boolean","description":"Only the shape."},` +
	`"cursor":{"type":"string","description":"Of the answer before: repeat its other arguments."}},` +
	`"required":["id"],"additionalProperties":false}`

// Request says which part of a stored result to read. At most one of Lines, Bytes, Path, Grep and
// Describe is set; Count goes with Path or Grep.
type Request struct {
	ID      string `json:"id"`      // of the stored result
	Block   int    `json:"block"`   // of the content block, from 1; 0: the whole result; -1: the request does not say
	Pointer string `json:"pointer"` // JSON pointer; the value to read is at it

	Lines    string `json:"lines"`
	Bytes    string `json:"bytes"`
	Path     string `json:"path"`
	Grep     string `json:"grep"`
	Context  int    `json:"context"`
	Count    bool   `json:"count"`
	Describe bool   `json:"describe"`

	Cursor string `json:"cursor"`
}

// InputError is a fault of a request, in a sentence that says what to do.
type InputError string

func (e InputError) Error() string { return string(e) }

func faultf(format string, args ...any) error { return InputError(fmt.Sprintf(format, args...)) }

// Parse reads the arguments of a call, which InputSchema allows, and checks what that cannot say.
func Parse(arguments []byte) (Request, error) {
	r := Request{Block: -1}
	if err := json.Unmarshal(arguments, &r); err != nil {
		return Request{}, faultf("The arguments are not as the input schema says (%v): correct them.", err)
	}
	return r, r.check()
}

// maxExpression bounds the bytes of a pattern or path.
const maxExpression = 2000

func (r *Request) check() error {
	if r.ID == "" {
		return InputError("Give id: the id of the stored result, as its preview says.")
	}
	var views []string
	for _, v := range []struct {
		name string
		set  bool
	}{{"lines", r.Lines != ""}, {"bytes", r.Bytes != ""}, {"path", r.Path != ""}, {"grep", r.Grep != ""},
		{"describe", r.Describe}} {
		if v.set {
			views = append(views, v.name)
		}
	}
	switch {
	case len(views) > 1:
		return faultf("Give only one of lines, bytes, path, grep and describe; these are %s.",
			strings.Join(views, " and "))
	case r.Count && r.Path == "" && r.Grep == "":
		return InputError("count goes with path or grep; describe says how large the rest is.")
	case r.Context > 0 && r.Grep == "":
		return InputError("context goes with grep: leave it out, or give grep.")
	case len(r.Path) > maxExpression || len(r.Grep) > maxExpression:
		return faultf("grep and path have at most %d bytes: use a shorter expression.", maxExpression)
	}
	return nil
}

// span reads a range such as 41-80, 41-, -20 or 41. The first of all is base; it returns the first,
// and the one after the last, both counted from 0 and within all. name is what the range is of.
func span(text, name string, base, all int) (from, to int, err error) {
	wrong := faultf("%s takes a range such as %d-%d, %d- or, for the last twenty, -20; it does not take %q.", name,
		base, base+39, base, text)
	first, last, ranged := strings.Cut(strings.TrimSpace(text), "-")
	first, last = strings.TrimSpace(first), strings.TrimSpace(last)
	a, err1 := strconv.Atoi(first)
	b, err2 := strconv.Atoi(last)
	switch {
	case !ranged && err1 == nil:
		b = a
	case ranged && first == "" && err2 == nil && b > 0:
		return max(0, all-b), all, nil
	case ranged && last == "" && err1 == nil:
		b = max(a, all-1+base)
	case !ranged || err1 != nil || err2 != nil:
		return 0, 0, wrong
	}
	if a < base || b < a {
		return 0, 0, wrong
	}
	if a-base >= all {
		return 0, 0, faultf("The last of the %s here is number %d: %s begins behind it.", name, all, text)
	}
	return a - base, min(b-base, all-1) + 1, nil
}
