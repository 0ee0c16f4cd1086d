package policy

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

const maxFile = 1 << 20 // bytes of a file of rules, grants or test calls

// Faults is every fault of one file of rules, grants or test calls, sorted by place. A file with
// faults is refused whole: half of a policy is another policy. The type tells them from the faults
// of a config.
type Faults struct{ textfile.Faults }

// readText reads the one document of data, a mapping with these keys. file is its name in the error, which is Faults.
func readText(file string, data []byte, keys ...shape.Field) error {
	r := &shape.Reader{File: file}
	if len(data) > maxFile {
		r.Fault(textfile.At(1, 1), "the file is larger than 1 MiB", "check the path, or split the rules by source")
	} else if root := r.Parsed(textfile.ParseYAML(data)); root != nil {
		shape.ReadFields(r, root, keys...)
	}
	if len(r.Faults) == 0 {
		return nil
	}
	return Faults{r.Faults.Sort()}
}

// text is a key that holds a string.
func text[S ~string](name string, at *S) shape.Field {
	return shape.Key(name, "", shape.As[S]{Text: shape.Text{Empty: true}}, at)
}

// texts is a key that holds a string or a list of strings.
func texts(name string, at *[]string) shape.Field {
	return shape.Key(name, "", shape.Words{Of: shape.Text{Empty: true}}, at)
}

func boolean(name string, at *bool) shape.Field { return shape.Key(name, "", shape.Boolean{}, at) }

// fact is a key that says true or false of a tool.
func fact(name string, at *facts.Fact[bool]) shape.Field {
	return shape.Key(name, "", shape.Func[facts.Fact[bool]](func(r *shape.Reader, n *textfile.Node) (facts.Fact[bool],
		bool) {
		v, ok := shape.Boolean{}.Read(r, n)
		return facts.Fact[bool]{Value: v, Origin: facts.Declared, Why: "the table says so"}, ok
	}), at)
}

// instant is a key that holds a time.
func instant(name string, at *time.Time) shape.Field {
	return shape.Key(name, "", shape.Func[time.Time](func(r *shape.Reader, n *textfile.Node) (time.Time, bool) {
		t, err := time.Parse(time.RFC3339, n.Text)
		if err != nil {
			r.Fault(n.Position, "this is no time", "write it like 2026-11-21T22:00:00Z")
		}
		return t.UTC(), err == nil
	}), at)
}

// each is a key that holds a list.
func each[V any](name string, at *[]V, of shape.Func[V]) shape.Field {
	return shape.Key(name, "", shape.List[V]{Of: of}, at)
}

// raw is a key that holds any value, which becomes JSON.
func raw(name string, at *json.RawMessage) shape.Field {
	return shape.Key(name, "", shape.Func[json.RawMessage](func(_ *shape.Reader, n *textfile.Node) (json.RawMessage,
		bool) {
		return JSONOf(n), true
	}), at)
}

// JSONOf is the value as JSON text. Numbers that only YAML spells in their way are strings.
func JSONOf(n *textfile.Node) json.RawMessage {
	var parts []string
	switch n.Kind {
	case textfile.Null:
		return json.RawMessage("null")
	case textfile.List:
		for _, item := range n.Items {
			parts = append(parts, string(JSONOf(item)))
		}
		return json.RawMessage("[" + strings.Join(parts, ",") + "]")
	case textfile.Mapping:
		for _, m := range n.Members {
			parts = append(parts, string(rawjson.Quote(m.Key))+":"+string(JSONOf(m.Value)))
		}
		return json.RawMessage("{" + strings.Join(parts, ",") + "}")
	case textfile.Bool:
		return json.RawMessage(strings.ToLower(n.Text))
	}
	if n.Kind != textfile.Text && json.Valid([]byte(n.Text)) {
		return json.RawMessage(n.Text)
	}
	return rawjson.Quote(n.Text)
}
