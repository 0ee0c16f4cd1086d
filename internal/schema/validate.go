package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// maxArgumentDepth bounds the nesting of arguments.
const maxArgumentDepth = 1000

// maxProblems bounds the problems that one Invalid names: enough to correct a call at one go.
const maxProblems = 10

// Problem is one way in which arguments break a schema. None of its fields holds a value of the arguments.
type Problem struct {
	Path string `json:"path"` // JSON pointer into the arguments; "" is the whole of them
	// what is wrong, to follow the argument's name: "must be an integer, got a string"
	Message    string `json:"message"`
	SchemaPath string `json:"schema_path,omitempty"` // JSON pointer to the keyword in the schema, with "#"
}

// Invalid says what a schema has against a value that it refuses.
type Invalid struct {
	Problems []Problem // sorted by path, then message; at most ten
	Omitted  int       // further problems
}

// Error is a text that a model can act on: each argument, what it must be, and what to do next.
func (e *Invalid) Error() string {
	return e.Summary() + ". Correct the arguments and call the tool again."
}

// Summary is Error without the advice.
func (e *Invalid) Summary() string { return e.summary("the arguments", "argument") }

// summary calls the whole value and its parts so.
func (e *Invalid) summary(whole, part string) string {
	var text strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			text.WriteString("; ")
		}
		if p.Path == "" {
			text.WriteString(whole + " ")
		} else {
			fmt.Fprintf(&text, "%s %q ", part, readable(p.Path))
		}
		text.WriteString(p.Message)
	}
	if e.Omitted > 0 {
		fmt.Fprintf(&text, "; and %d more", e.Omitted)
	}
	return text.String()
}

// Validate checks args, a JSON value; nothing stands for {}. It returns nil where they fit. It may
// be called concurrently.
func (s *Schema) Validate(args json.RawMessage) (invalid *Invalid) {
	defer func() {
		switch fault := recover(); fault {
		case nil:
		case errCostly:
			invalid = refused("are too large or too deeply nested to check against the tool's schema; send less, or " +
				"a flatter value")
		default: // the library's: a stranger's schema must not end the process
			invalid = refused("cannot be checked against the tool's schema; send simpler arguments")
		}
	}()
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	c := measure(args)
	if c.depth > maxArgumentDepth {
		return refused(fmt.Sprintf("nest %d levels deep; send at most %d levels", c.depth, maxArgumentDepth))
	}
	if c.tooBig {
		return refused(fmt.Sprintf("hold a number of more than %d digits or an exponent beyond %d; send a smaller "+
			"number or a string",
			maxDigits, maxExponent))
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return refused("are not valid JSON; send a JSON object")
	}
	s.meter.mu.Lock()
	defer s.meter.mu.Unlock()
	s.meter.left = freeSteps + stepsPerByte*len(args)
	if err = s.root.Validate(value); err == nil {
		return nil
	}
	var fault *jsonschema.ValidationError
	if !errors.As(err, &fault) {
		return refused("cannot be checked against the tool's schema; send simpler arguments")
	}
	problems := (&describer{root: s.root}).problems(fault)
	if len(problems) == 0 {
		// all that failed was a circle of references, which is the schema's fault and says nothing
		// of the arguments
		return nil
	}
	invalid = &Invalid{Problems: problems}
	if len(problems) > maxProblems {
		invalid.Problems, invalid.Omitted = slices.Clip(problems[:maxProblems]), len(problems)-maxProblems
	}
	return invalid
}

func refused(message string) *Invalid { return &Invalid{Problems: []Problem{{Message: message}}} }

// readable writes a JSON pointer the way people write paths: items[0].name.
func readable(pointer string) string {
	var path strings.Builder
	for _, token := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		token = rawjson.PointerName(token)
		switch {
		case token != "" && strings.Trim(token, "0123456789") == "":
			path.WriteString("[" + token + "]")
		case path.Len() > 0:
			path.WriteString("." + token)
		default:
			path.WriteString(token)
		}
	}
	return clip(path.String())
}
