// Package schema compiles the JSON Schemas that strangers declare for their tools and checks arguments against them.
//
// Both the schema and the arguments are hostile input. So a schema is measured before it is decoded, references lead
// nowhere outside of it, regular expressions that Go cannot express are passed over instead of failing the schema, and
// the work that one validation may cost is bounded before it is begun. Messages about arguments never repeat a value:
// arguments may hold secrets, and messages go to models, logs and records.
//
// The schema language itself is github.com/santhosh-tekuri/jsonschema.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of a schema. A real one has up to a few hundred subschemas, two dozen levels and 30 kB; the bounds keep the
// compiler, which is quadratic in places, below a fraction of a second. No setting goes beyond them.
const (
	MaxBytes = 4 << 20 // of the schema's text
	MaxDepth = 192     // levels of objects and arrays

	maxSchemas    = 5_000     // objects and booleans, each of which may be a subschema
	maxValues     = 100_000   // values of any kind
	maxReferences = 2_000_000 // references times subschemas
	maxIDs        = 1_000_000 // identifiers times subschemas
)

// Schema is a JSON Schema that compiles. It is safe for concurrent use.
type Schema struct {
	root    *jsonschema.Schema
	ignored []string
	broken  []string
	meter   meter
}

// base is the address that the compiler knows the schema by. It is hierarchical so that a relative reference cannot
// resolve to the schema itself, and of a scheme that nothing fetches.
const base = "schema://declared/schema"

// drafts are tried in this order for a schema that names no dialect. "When $schema is absent, 2020-12" is MCP's rule,
// but many servers write draft-07's arrays of items or draft-04's boolean exclusiveMinimum without saying so, and such
// a schema serves better in its own dialect than not at all.
func drafts() []*jsonschema.Draft {
	return []*jsonschema.Draft{jsonschema.Draft2020, jsonschema.Draft7, jsonschema.Draft4}
}

// Compile compiles raw: in the dialect that its $schema names (draft-04 to 2020-12), otherwise in the first of 2020-12,
// draft-07 and draft-04 that it is valid in. Nothing is ever fetched: a reference to anything but the schema itself and
// the published meta-schemas is an error. The error is one sentence for a person.
func Compile(raw json.RawMessage) (s *Schema, err error) {
	defer func() {
		if fault := recover(); fault != nil { // the library's: a stranger's schema must not end the process
			s, err = nil, fmt.Errorf("compile schema: the compiler gave up (%v): simplify the schema", fault)
		}
	}()
	doc, err := decodeSchema(raw)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	declared := ""
	if object, ok := doc.(map[string]any); ok {
		declared, _ = object["$schema"].(string)
	}
	emptyEnums := dropEmptyEnums(doc)
	var first error
	for _, draft := range drafts() {
		s, err := compileAs(draft, doc)
		if err == nil {
			if emptyEnums > 0 {
				s.ignored = append(s.ignored, fmt.Sprintf("%d empty enum: not applied, for nothing could satisfy it",
					emptyEnums))
				s.broken = append(s.broken, "an empty enum")
			}
			return s, nil
		}
		if first == nil {
			first = err
		}
		var invalid *jsonschema.SchemaValidationError
		if declared != "" || !errors.As(err, &invalid) {
			break
		}
	}
	return nil, fmt.Errorf("compile schema: %w", explain(first, declared))
}

func compileAs(draft *jsonschema.Draft, doc any) (*Schema, error) {
	patterns := newPatterns()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(draft)
	c.UseLoader(refuse{})
	c.UseRegexpEngine(patterns.compile)
	for _, name := range formats() {
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(any) error { return nil }})
	}
	if err := c.AddResource(base, doc); err != nil {
		return nil, err
	}
	root, err := c.Compile(base)
	if err != nil {
		return nil, err
	}
	g := survey(root, dynamicTargets(c, doc))
	if at, ok := g.cycle(); ok {
		return nil, fmt.Errorf("%s refers to itself without end: break the circle of $ref", pointerOf(at.Location))
	}
	made := &Schema{root: root}
	made.ignored, made.broken = patterns.report()
	g.loosen(len(made.ignored) > 0)
	made.meter.watch(g)
	return made, nil
}

// dynamicTargets returns the schemas of doc that a $dynamicRef may lead to at run time.
func dynamicTargets(c *jsonschema.Compiler, doc any) []*jsonschema.Schema {
	var targets []*jsonschema.Schema
	for _, pointer := range dynamicAnchors(doc) {
		// An anchor that is mere data, in an enum for instance, may fail to compile: then nothing leads to it.
		if s, err := c.Compile(base + "#" + pointer); err == nil {
			targets = append(targets, s)
		}
	}
	return targets
}

// Ignored names the parts of the schema that are not applied, with a reason each: regular expressions that Go cannot
// express, to which every string is taken to conform, and empty enums. No valid argument is refused for it.
func (s *Schema) Ignored() []string { return s.ignored }

// Broken names the parts among the ignored that other libraries do not compile: text that is no regular expression in
// any dialect, and empty enums.
func (s *Schema) Broken() []string { return s.broken }

// refuse is the loader of everything outside the schema.
type refuse struct{}

var errRemote = errors.New("schemas are never fetched")

func (refuse) Load(string) (any, error) { return nil, errRemote }

// formats names the formats that the library asserts. Older drafts assert them by default; here format is annotation
// only in every draft, because servers use it loosely and the upstream checks its own arguments anyway.
func formats() []string {
	return []string{"json-pointer", "relative-json-pointer", "uuid", "duration", "period", "ipv4", "ipv6", "hostname",
		"email", "date", "time", "date-time", "uri", "iri", "uri-reference", "iri-reference", "uri-template", "semver"}
}

// Fault is the error of a schema in which one value makes it no valid JSON Schema.
type Fault struct {
	At      string // JSON pointer to the value
	message string
}

func (f *Fault) Error() string {
	return fmt.Sprintf("it is no valid JSON Schema: %s %s: correct it", place(f.At), f.message)
}

// explain turns a compiler's error into a sentence that ends in what to do.
func explain(err error, declared string) error {
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		if dialect, _, _ := strings.Cut(declared, "#"); dialect == load.URL {
			return fmt.Errorf("$schema %q is no known dialect: use %q", clip(declared),
				"https://json-schema.org/draft/2020-12/schema")
		}
		return fmt.Errorf("it refers to %q, which is not part of it, and %w: put the definition under $defs",
			clip(strings.TrimPrefix(load.URL, "schema://declared/")), errRemote)
	}
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		var cause *jsonschema.ValidationError
		if errors.As(invalid.Err, &cause) {
			if problems := (&describer{}).problems(cause); len(problems) > 0 {
				return &Fault{At: problems[0].Path, message: problems[0].Message}
			}
		}
		return errors.New("it is no valid JSON Schema: correct it")
	}
	return fmt.Errorf("%s: correct it", clip(strings.ReplaceAll(err.Error(), base, "")))
}

func place(pointer string) string {
	if pointer == "" {
		return "the schema"
	}
	return fmt.Sprintf("%q", clip(pointer))
}
