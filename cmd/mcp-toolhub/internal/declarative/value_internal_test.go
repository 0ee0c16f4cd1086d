package declarative

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
)

// FuzzValue: a value is one argument or variable, byte for byte, or refused; the shell's text is the same whatever the value is.
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
	const script = `grep -- "$ARG_v" "$1"`
	shell := parsed(`,"command_type":"shell","command":` + strconv.Quote(script) + `,"args":["x={{v}}"]`)
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
		argv, _, err := plain.expand(arguments)
		if want := []string{"p", "a", "b=" + value + "c", "--", value}; (err != nil) != refused || !refused && !slices.Equal(argv, want) {
			t.Errorf("%q: %q, %v", value, argv, err)
		}
		refused = refused || strings.HasPrefix(value, "-")
		argv, variables, err := shell.expand(arguments)
		if (err != nil) != refused || !refused && (!slices.Equal(argv, []string{"sh", "-c", script, "sh", "x=" + value}) ||
			!slices.Equal(variables, []string{"ARG_v=" + value})) {
			t.Errorf("%q: %q %q, %v", value, argv, variables, err)
		}
	})
}
