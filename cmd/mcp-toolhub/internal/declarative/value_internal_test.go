package declarative

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
)

// FuzzValue: a value is one argument, byte for byte, or refused; the shell's text is the same whatever the value is.
func FuzzValue(f *testing.F) {
	bounds, err := command.NewBounds(command.Config{Root: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	const rest = `"name":"x","description":"d","permission":"write","input_schema":{"type":"object","properties":{"v":{"type":"string"}},"required":["v"]}`
	parsed := func(text string) *definition {
		d, faults := parse("x.json", []byte("{"+rest+text+"}"), bounds)
		if faults != nil {
			f.Fatal(faults)
		}
		return d
	}
	plain := parsed(`,"command":"p","args":["a","b={{v}}c","--","{{v}}"]`)
	shell := parsed(`,"command":"p","command_type":"shell","command":"grep -e x={{v}} -- {{v}} | sort"`[len(`,"command":"p"`):])
	script, err := shell.argv(json.RawMessage(`{"v":""}`))
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"", "a b", "$(x)", "'\"`\n", "-x", "{{v}}", "\x00", "é\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		arguments, err := json.Marshal(map[string]string{"v": value})
		if err != nil {
			t.Fatal(err)
		}
		value = strings.ToValidUTF8(value, "\uFFFD")
		if !utf8.ValidString(value) || strings.Contains(string(arguments), `\ufffd`) {
			return // JSON cannot say it
		}
		refused := strings.ContainsRune(value, 0) || len(value) > maxValue
		argv, err := plain.argv(arguments)
		if want := []string{"p", "a", "b=" + value + "c", "--", value}; (err != nil) != refused || !refused && !slices.Equal(argv, want) {
			t.Errorf("%q: %q, %v", value, argv, err)
		}
		argv, err = shell.argv(arguments)
		if (err != nil) != refused || !refused && !slices.Equal(argv, append(slices.Clone(script[:4]), value, value)) {
			t.Errorf("%q: %q, %v", value, argv, err)
		}
	})
}
