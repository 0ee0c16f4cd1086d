package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// maxLeaves bounds how much of a failed validation is described at all.
const maxLeaves = 2_000

// describer turns the library's tree of errors into problems. It writes its own messages because the library's repeat
// the values that they are about.
type describer struct {
	root   *jsonschema.Schema // nil where no schema is to be looked into
	leaves int

	located map[string]*jsonschema.Schema // by location; made when first needed
}

// fault is a problem with what telling the branches of a choice apart needs.
type fault struct {
	Problem
	depth int
	kind  jsonschema.ErrorKind
}

func (d *describer) problems(err *jsonschema.ValidationError) []Problem {
	var problems []Problem
	for _, f := range d.faults(err, nil) {
		problems = append(problems, f.Problem)
	}
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message),
			cmp.Compare(a.SchemaPath, b.SchemaPath))
	})
	return slices.CompactFunc(problems, func(a, b Problem) bool { return a.Path == b.Path && a.Message == b.Message })
}

// faults appends what the tree err says.
func (d *describer) faults(err *jsonschema.ValidationError, out []fault) []fault {
	if d.leaves >= maxLeaves {
		return out
	}
	switch k := err.ErrorKind.(type) {
	case nil, *kind.RefCycle:
		return out
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		for _, cause := range err.Causes {
			out = d.faults(cause, out)
		}
		return out
	case *kind.AnyOf:
		return append(out, d.choice(err)...)
	case *kind.OneOf:
		if len(k.Subschemas) < 2 {
			return append(out, d.choice(err)...)
		}
	}
	d.leaves++
	return append(out, newFault(err, d.message(err)))
}

func newFault(err *jsonschema.ValidationError, message string) fault {
	p := Problem{Path: pointer(err.InstanceLocation), Message: message, SchemaPath: schemaPath(err)}
	return fault{p, len(err.InstanceLocation), err.ErrorKind}
}

// choice describes a value that matches no branch of an anyOf or oneOf: by the one branch that was meant where that can
// be told, otherwise by what the branches want.
func (d *describer) choice(err *jsonschema.ValidationError) []fault {
	depth := len(err.InstanceLocation)
	var types []string
	var meant, all [][]fault
	for _, cause := range err.Causes {
		branch := d.faults(cause, nil)
		if len(branch) == 0 {
			continue
		}
		all = append(all, branch)
		wrong := false
		for _, f := range branch {
			switch k := f.kind.(type) {
			case *kind.Type:
				if f.depth == depth {
					types = append(types, k.Want...)
				}
				wrong = wrong || f.depth == depth
			case *kind.Const, *kind.Enum:
				wrong = wrong || f.depth <= depth+1 // the value, or the member that tells the branches apart
			}
		}
		if !wrong {
			meant = append(meant, branch)
		}
	}
	switch {
	case len(all) == 0:
		return nil
	case len(meant) == 1:
		return meant[0]
	case len(all) == 1:
		return all[0]
	case len(types) > 0 && len(meant) == 0 && onlyTypes(all, depth):
		slices.Sort(types)
		types = slices.Compact(types)
		return []fault{newFault(err, typeMessage(types, all[0][0].kind.(*kind.Type).Got))}
	}
	if len(meant) > 0 {
		all = meant
	}
	return []fault{newFault(err, "must have one of the allowed forms: "+forms(all, pointer(err.InstanceLocation)))}
}

// onlyTypes reports whether every branch failed for the type of the value itself and nothing else.
func onlyTypes(branches [][]fault, depth int) bool {
	for _, branch := range branches {
		if _, ok := branch[0].kind.(*kind.Type); !ok || len(branch) > 1 || branch[0].depth != depth {
			return false
		}
	}
	return true
}

// forms lists what is wrong with a value in view of each branch.
func forms(branches [][]fault, at string) string {
	const most = 4
	var list []string
	for _, branch := range branches {
		slices.SortFunc(branch, func(a, b fault) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
		})
		first := branch[0]
		first.Message = strings.TrimSuffix(first.Message, textHint)
		text := "it " + first.Message
		if rest, below := strings.CutPrefix(first.Path, at+"/"); below {
			text = fmt.Sprintf("its %q %s", readable(rest), first.Message)
		}
		list = append(list, text)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	more := ""
	if len(list) > most {
		more = fmt.Sprintf(", or one of %d more", len(list)-most)
		list = list[:most]
	}
	return strings.Join(list, ", or ") + more
}

// message says what is wrong at err, to follow the name of the argument.
func (d *describer) message(err *jsonschema.ValidationError) string {
	switch k := err.ErrorKind.(type) {
	case *kind.Type:
		return typeMessage(k.Want, k.Got)
	case *kind.Enum:
		return "must be one of " + values(k.Want)
	case *kind.Const:
		return "must be " + values([]any{k.Want})
	case *kind.Required:
		return "must have " + names("the property", "the properties", k.Missing)
	case *kind.AdditionalProperties:
		return "must not have " + names("the property", "the properties", k.Properties) + d.allowed(err)
	case *kind.PropertyNames:
		return fmt.Sprintf("must not have a property named %q", clip(k.Property))
	case *kind.Dependency:
		return fmt.Sprintf("must have %s where it has %q", names("the property", "the properties", k.Missing),
			clip(k.Prop))
	case *kind.DependentRequired:
		return fmt.Sprintf("must have %s where it has %q", names("the property", "the properties", k.Missing),
			clip(k.Prop))
	case *kind.FalseSchema:
		return "is not accepted; leave it out"
	case *kind.Not:
		return "has a form that the schema rules out (\"not\")"
	case *kind.OneOf:
		return fmt.Sprintf("must have exactly one of the allowed forms, but fits forms %d and %d of \"oneOf\"",
			k.Subschemas[0]+1, k.Subschemas[1]+1)
	case *kind.Pattern:
		return fmt.Sprintf("must match the pattern %q", clip(k.Want))
	}
	if text := sizeMessage(err.ErrorKind); text != "" {
		return text
	}
	if path := err.ErrorKind.KeywordPath(); len(path) > 0 {
		return fmt.Sprintf("does not satisfy %q", path[0])
	}
	return "does not satisfy the schema"
}

func sizeMessage(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %s", plural(k.Want, "character", "characters"))
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %s", plural(k.Want, "character", "characters"))
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %s", plural(k.Want, "item", "items"))
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %s", plural(k.Want, "item", "items"))
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %s", plural(k.Want, "property", "properties"))
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %s", plural(k.Want, "property", "properties"))
	case *kind.UniqueItems:
		return fmt.Sprintf("must not repeat an item: items %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return "must contain an item of the form that \"contains\" asks for"
	case *kind.Minimum:
		return "must be at least " + number(k.Want)
	case *kind.Maximum:
		return "must be at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be greater than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + number(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + number(k.Want)
	}
	return ""
}

// textHint helps models that encode a value twice.
const textHint = "; send the value itself, not text that holds it"

func typeMessage(want []string, got string) string {
	wanted := make([]string, len(want))
	for i, name := range want {
		wanted[i] = article(name)
	}
	text := fmt.Sprintf("must be %s, got %s", strings.Join(wanted, " or "), article(got))
	if got == "number" && slices.Contains(want, "integer") {
		return text + " that is not whole"
	}
	if got == "string" && !slices.Contains(want, "string") {
		return text + textHint
	}
	return text
}

func article(name string) string {
	switch name {
	case "null":
		return name
	case "integer", "array", "object":
		return "an " + name
	}
	return "a " + name
}

// names joins property names, sorted and capped.
func names(one, many string, list []string) string {
	const most = 10
	list = slices.Sorted(slices.Values(list))
	var quoted []string
	for _, name := range list[:min(len(list), most)] {
		quoted = append(quoted, fmt.Sprintf("%q", clip(name)))
	}
	if len(list) == 1 {
		return one + " " + quoted[0]
	}
	text := many + " " + strings.Join(quoted, ", ")
	if len(list) > most {
		text += fmt.Sprintf(" and %d more", len(list)-most)
	}
	return text
}

// allowed names the properties that stand where err found others.
func (d *describer) allowed(err *jsonschema.ValidationError) string {
	if d.root == nil {
		return ""
	}
	if d.located == nil {
		d.located = make(map[string]*jsonschema.Schema)
		for _, s := range survey(d.root, nil).all {
			d.located[s.Location] = s
		}
	}
	s := d.located[err.SchemaURL]
	if s == nil || len(s.Properties) == 0 {
		return ""
	}
	return "; it may have " + names("only", "only", slices.Collect(maps.Keys(s.Properties)))
}

// values lists what a schema allows. They are the schema's own, not the arguments'.
func values(list []any) string {
	const most = 10
	var texts []string
	for _, value := range list[:min(len(list), most)] {
		if text, err := json.Marshal(value); err == nil {
			texts = append(texts, clip(string(text)))
		}
	}
	if len(list) > most {
		texts = append(texts, fmt.Sprintf("%d more", len(list)-most))
	}
	return strings.Join(texts, ", ")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// number writes a bound exactly where it is short, otherwise rounded.
func number(n *big.Rat) string {
	if n.IsInt() && n.Num().BitLen() <= 100 {
		return n.Num().String()
	}
	if f, exact := n.Float64(); exact || n.Denom().BitLen() <= 100 {
		return fmt.Sprintf("%v", f)
	}
	return n.FloatString(12)
}

func pointer(tokens []string) string {
	var path strings.Builder
	for _, token := range tokens {
		path.WriteByte('/')
		path.WriteString(rawjson.PointerToken(token))
	}
	return path.String()
}

// schemaPath is the pointer to the keyword that err is about.
func schemaPath(err *jsonschema.ValidationError) string {
	return pointerOf(err.SchemaURL) + pointer(err.ErrorKind.KeywordPath())
}

// pointerOf is the fragment of a location in the schema, readable. Locations in meta-schemas keep their address.
func pointerOf(location string) string {
	fragment, own := strings.CutPrefix(location, base)
	if !own {
		return location
	}
	if plain, err := url.PathUnescape(fragment); err == nil {
		return plain
	}
	return fragment
}
