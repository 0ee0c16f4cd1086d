package config_test

import (
	"errors"
	"os"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// FuzzParse: whatever the bytes, there are settings or faults, never both, never a panic.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/full.yaml", "testdata/clients/vscode/.vscode/mcp.json", "testdata/faults/values.yaml",
		"testdata/faults/references.yaml", "testdata/faults/duplicates.json", "testdata/faults/aliases.yaml"} {
		data, err := os.ReadFile(pattern)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, true)
		f.Add(data, false)
	}
	f.Add([]byte("a: &a {<<: *a}\n? [x]\n: y\n"), true)
	f.Fuzz(func(t *testing.T, data []byte, yaml bool) {
		path := "c.json"
		if yaml {
			path = "c.yaml"
		}
		s, err := config.Parse(path, data, testEnv())
		var faults textfile.Faults
		switch {
		case err == nil && s == nil, err != nil && s != nil:
			t.Fatalf("settings %v and error %v", s, err)
		case err != nil && (!errors.As(err, &faults) || len(faults) == 0):
			t.Fatalf("an error without faults: %v", err)
		}
		for _, fault := range faults {
			if fault.Line < 1 || fault.Column < 1 || fault.Message == "" {
				t.Fatalf("a fault without place or words: %#v", fault)
			}
		}
	})
}
