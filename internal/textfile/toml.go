package textfile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/pelletier/go-toml/v2"
)

// ParseTOML reads a TOML text. Keys are sorted, since the library does not keep their order, and no
// value has its place. Faults show nothing of the text.
func ParseTOML(data []byte) (*Node, Faults) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if fault := unreadable(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))); fault != nil {
		return nil, Faults{*fault}
	}
	root := map[string]any{}
	if err := toml.Unmarshal(data, &root); err != nil {
		f := Fault{Position: At(1, 1), Message: "not valid TOML here",
			Hint: "check quotes, brackets and keys that stand there twice"}
		var located *toml.DecodeError
		if errors.As(err, &located) {
			f.Position = At(located.Position())
		}
		return nil, Faults{f}
	}
	return tomlNode(root), nil
}

func tomlNode(v any) *Node {
	n := &Node{Position: At(1, 1)}
	switch v := v.(type) {
	case map[string]any:
		n.Kind = Mapping
		for _, key := range slices.Sorted(maps.Keys(v)) {
			n.Members = append(n.Members, Member{n.Position, key, tomlNode(v[key])})
		}
	case []any:
		n.Kind = List
		for _, item := range v {
			n.Items = append(n.Items, tomlNode(item))
		}
	case string:
		n.Kind, n.Text = Text, v
	case bool:
		n.Kind, n.Text = Bool, strconv.FormatBool(v)
	case int64:
		n.Kind, n.Text = Integer, strconv.FormatInt(v, 10)
	case float64:
		n.Kind, n.Text = Number, strconv.FormatFloat(v, 'g', -1, 64)
	default: // dates and times
		n.Kind, n.Text = Text, fmt.Sprint(v)
	}
	return n
}
