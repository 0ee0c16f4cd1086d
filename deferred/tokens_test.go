package deferred

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// counted is a declaration and what tokenizers make of what a model sees of it: of
// JSON.stringify({name, description, inputSchema}).
type counted struct {
	O200k       int             `json:"o200k_base"`
	Cl100k      int             `json:"cl100k_base"`
	Declaration json.RawMessage `json:"declaration"`
}

// TestEstimate holds the estimate against counts of real tokenizers: within a quarter for each declaration (tiny ones
// within 6 tokens), and within a tenth for all of them.
func TestEstimate(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []counted
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	sums := map[string]int{}
	for _, c := range all {
		got := Tokens(c.Declaration)
		sums["estimate"] += got
		for name, want := range map[string]int{"o200k_base": c.O200k, "cl100k_base": c.Cl100k} {
			sums[name] += want
			if off := max(got-want, want-got); off > max(want/4, 6) {
				t.Errorf("%.60s: %d tokens estimated, %d by %s", c.Declaration, got, want, name)
			}
		}
	}
	for _, name := range []string{"o200k_base", "cl100k_base"} {
		if off := max(sums["estimate"]-sums[name], sums[name]-sums["estimate"]); off > sums[name]/10 {
			t.Errorf("all: %d tokens estimated, %d by %s", sums["estimate"], sums[name], name)
		}
	}
	if len(all) < 15 {
		t.Errorf("only %d declarations were counted", len(all))
	}
}

// TestTokens: what clients keep from their models does not count, and an answer costs what it says of its tools.
func TestTokens(t *testing.T) {
	t.Parallel()
	d := json.RawMessage(`{"name":"a","description":"Adds two numbers.","inputSchema":{"type":"object"},"_meta":{"x":"` + strings.Repeat("much ", 100) + `"}}`)
	if got := Tokens(d); got < 10 || got > 30 {
		t.Errorf("a declaration: %d", got)
	}
	one, two := AnswerTokens(d), AnswerTokens(d, json.RawMessage(`{"name":"b"}`))
	if one < 40 || one > 100 || two < one+10 || two > one+60 {
		t.Errorf("an answer: %d, and with another tool %d", one, two)
	}
}

func FuzzEstimate(f *testing.F) {
	f.Add(`{"name":"a","description":"b c 123 …","inputSchema":{}}`)
	f.Add("\xff{\"")
	f.Fuzz(func(t *testing.T, text string) {
		if n := tokensOf([]byte(text)); n < 0 || n > len(text)+1 {
			t.Errorf("%d tokens in %d bytes", n, len(text))
		}
		Tokens(json.RawMessage(text))
		oneLine(text, 50)
	})
}

// pathology is text without end that must not take long to weigh.
func TestEstimateIsLinear(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"a", "A", "0", " ", "-", "é", "漢", "\xff", "aA"} {
		if n := tokensOf([]byte(strings.Repeat(piece, 1<<20))); n <= 0 {
			t.Errorf("%q a million times is %d tokens", piece, n)
		}
	}
}
