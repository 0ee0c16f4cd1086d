package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// TestFaultListings compares the whole report on each broken file with a golden listing.
func TestFaultListings(t *testing.T) {
	t.Parallel()
	for _, path := range files(t, "testdata/faults/*.yaml", "testdata/faults/*.json") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s, err := config.Parse(filepath.ToSlash(path), data, testEnv())
			var faults textfile.Faults
			if s != nil || !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("settings %v, error %v: want faults alone", s, err)
			}
			for _, secret := range []string{"SECRET", "literal-token", "a-token-of-enough"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the report shows a value: %v", err)
				}
			}
			golden(t, path+".golden", err.Error()+"\n")
		})
	}
}

func TestTooManyTokens(t *testing.T) {
	t.Parallel()
	_, err := config.Parse("x.yaml", []byte(strings.Repeat("- a\n", 60_000)), testEnv())
	want := "x.yaml:50001:1: more than 100,000 YAML tokens; check the path, or write the file as JSON"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestFaultsUnwrap(t *testing.T) {
	t.Parallel()
	_, err := config.Parse("x.yaml", []byte("hub:\n  nmae: a\n"), testEnv())
	var f textfile.Fault
	if !errors.As(err, &f) {
		t.Fatalf("no Fault in %v", err)
	}
	want := textfile.Fault{File: "x.yaml", Position: textfile.At(2, 3), Key: "hub.nmae", Message: "unknown key", Hint: `did you mean "name"?`}
	if f != want {
		t.Errorf("got %#v, want %#v", f, want)
	}
}

func TestTooManyFaultsAreCutOff(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{`)
	for range 2000 {
		b.WriteString(`"some_key": 1,`)
	}
	b.WriteString(`}`)
	_, err := config.Parse("x.json", []byte(b.String()), testEnv())
	var faults textfile.Faults
	if !errors.As(err, &faults) || len(faults) != 501 || !strings.HasPrefix(faults[500].Message, "more than 500 faults") {
		t.Errorf("got %d faults, the last %v", len(faults), faults[len(faults)-1])
	}
}
