package shape_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

type colour string

// thing is what the files of these tests say.
type thing struct {
	name    shape.Located[string]
	colour  colour
	on      bool
	count   int
	wait    time.Duration
	size    int64
	words   []string
	parts   []shape.Located[string]
	by      []shape.Entry[int]
	section string
}

func thingKeys(t *thing) []shape.Field {
	return []shape.Field{
		shape.Must(shape.KeyAt("name", "What it is called.", shape.Text{}, &t.name)),
		shape.Key("colour", "", shape.OneOf[colour]("red", "green"), &t.colour),
		shape.Key("on", "", shape.Boolean{}, &t.on),
		shape.Key("count", "", shape.Integer[int]{Min: 1, Max: 9}, &t.count),
		shape.Key("wait", "", shape.Duration{Max: time.Hour}, &t.wait),
		shape.Key("size", "", shape.Size[int64]{Min: 1, Max: 1 << 20}, &t.size),
		shape.Key("words", "", shape.Words{}, &t.words),
		shape.Key("parts", "", shape.ListAt(shape.Text{}), &t.parts),
		shape.Key("by", "", shape.Mapping[int]{Of: shape.Integer[int]{Max: 9}}, &t.by),
		shape.Section("section", "", shape.Key("deep", "", shape.Text{}, &t.section)),
		shape.Foreign("theirs", "", "it is of another program"),
	}
}

func read(t *testing.T, text string) (thing, bool, *shape.Reader) {
	t.Helper()
	root, faults := textfile.Parse("f.yaml", []byte(text))
	if root == nil {
		t.Fatal(faults)
	}
	r := &shape.Reader{File: "f"}
	v, sound := shape.ObjectOf(thingKeys).Read(r, root)
	return v, sound, r
}

func TestEveryKeyGoesToItsPlace(t *testing.T) {
	t.Parallel()
	v, sound, r := read(t, "name: a\ncolour: red\non: true\ncount: 3\nwait: 5m\nsize: 2KiB\nwords: one\nparts: [x, y]\nby: {k: 7}\n"+
		"section: {deep: down}\ntheirs: {a: [1]}\n")
	if !sound || len(r.Faults) > 0 || v.name.Value != "a" || v.colour != "red" || !v.on || v.count != 3 || v.wait != 5*time.Minute ||
		v.size != 2048 || len(v.words) != 1 || v.parts[1].Path != "parts[1]" || v.by[0].Name != "k" || v.by[0].Value != 7 || v.section != "down" {
		t.Errorf("%+v, %v", v, r.Faults)
	}
	if len(r.Warnings) != 1 || r.Warnings[0].Key != "theirs" {
		t.Errorf("warnings: %v", r.Warnings)
	}
}

func TestFaultsHaveTheirPlaces(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"on: true":                         "f:1:1: the key name is missing; add it: What it is called.",
		"name: 1":                          "f:1:7: name: want a string, found a whole number; put it in quotes",
		"name: ''":                         "f:1:7: name: is empty; write a value, or remove the key",
		"name: a\nname: b":                 "f:2:1: name: duplicate key, first at f:1:1; remove one of the two",
		"name: a\ncolor: red":              `f:2:1: color: unknown key; did you mean "colour"?`,
		"name: a\ncolour: gren":            `f:2:9: colour: want "red" or "green"; did you mean "green"?`,
		"name: a\non: 'yes'":               "f:2:5: on: want true or false, found a string; write true or false, without quotes",
		"name: a\ncount: 10":               "f:2:8: count: out of range; write a number from 1 to 9",
		"name: a\nwait: 5":                 "f:2:7: wait: a number without a unit",
		"name: a\nwait: 2h":                "f:2:7: wait: out of range; write a duration from 0s to 1h",
		"name: a\nsize: 1 XB":              "f:2:7: size: not a size",
		"name: a\nwords: []":               "f:2:8: words: the list is empty",
		"name: a\nwords: [x, '']":          "f:2:12: words[1]: is empty",
		"name: a\nparts: x":                `f:2:8: parts: want a list, found a string; write it as a list: ["…"]`,
		"name: a\nby: {k: 7, 'a b': x}":    `f:2:19: by["a b"]: want a whole number, found a string`,
		"name: a\nsection:\n  deep: [1]":   "f:3:9: section.deep: want a string, found a list",
		"name: a\nsection: {TOKEN=x: yes}": `f:2:11: section["TOKEN=…"]: unknown key; known here: deep`,
		"[name]":                           "f:1:1: want a mapping, found a list",
	} {
		_, _, r := read(t, text)
		if len(r.Faults) != 1 || !strings.HasPrefix(r.Faults[0].Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", text, errors.Join(r.Faults), want)
		}
	}
}

// TestASchemaHoldsEveryKey: what is read is what the schema says.
func TestASchemaHoldsEveryKey(t *testing.T) {
	t.Parallel()
	s := shape.ObjectOf(thingKeys).Schema()
	properties, _ := s["properties"].(shape.Schema)
	if known := len(shape.ObjectOf(thingKeys).Known()); len(properties) != known+1 || s["additionalProperties"] != false {
		t.Errorf("%d keys in %v", known, s)
	}
	if required, _ := s["required"].([]string); len(required) != 1 || required[0] != "name" {
		t.Errorf("required: %v", required)
	}
}
