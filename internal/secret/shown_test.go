package secret

import (
	"slices"
	"strings"
	"testing"
)

func TestRedactor(t *testing.T) {
	t.Parallel()
	r := Entry{
		URL:     "https://user:hunter22@api.example/mcp?key=s3cr3t-key&x=1",
		Headers: map[string]string{"Authorization": "Bearer tok-12345"},
		Env:     []string{"API_KEY=abcdef-1", "MODE=production", "PIN_TOKEN=12"},
	}.Redactor()
	for in, want := range map[string]string{
		`Post "https://user:hunter22@api.example/mcp?key=s3cr3t-key&x=1": EOF`: `Post "https://api.example/mcp": EOF`,
		"bad token tok-12345 for Bearer tok-12345":                             "bad token [masked] for [masked]",
		"key abcdef-1 in production 12":                                        "key [masked] in production 12",
		"get http://a:b@other.example/p?q=1 now":                               "get http://other.example/p now",
		"\x1b[31mred\x1b]0;title\x07\x00\u202eevil\nline":                      "redevil line",
		"invalid \xff utf":                                                     "invalid  utf",
		strings.Repeat("é", 400):                                               strings.Repeat("é", 200) + "…",
	} {
		if got := r.Text(in); got != want {
			t.Errorf("Text(%q)\n got %q\nwant %q", in, got, want)
		}
	}
}

// TestOwn: what a server sends goes on without the keys in its own entry. Ordinary words, short values, and secrets of others stay.
func TestOwn(t *testing.T) {
	t.Parallel()
	r := Entry{URL: "https://api.example/mcp?key=s3cr3t-key-0123456", Headers: map[string]string{"Authorization": `Bearer a"b-12345-0123456`},
		Env: []string{"AUTH_MODE=default", "PIN_TOKEN=12345678", "DB_PASSWORD=orders7"}}.Redactor()
	for in, want := range map[string]string{
		`{"text":"s3cr3t-key-0123456, default, orders7","n":12345678,"k":["Bearer a\"b-12345-0123456"]}`: `{"text":"[masked], default, orders7","n":12345678,"k":["Bearer [masked]"]}`,
		`{"s3cr3t-key-0123456": "ghp_16C7e42F292c6912E7710c838347Ae178B4a"}`:                             `{"[masked]": "ghp_16C7e42F292c6912E7710c838347Ae178B4a"}`,
	} {
		if got := string(r.Own([]byte(in))); got != want {
			t.Errorf("Own(%s)\n got %s\nwant %s", in, got, want)
		}
	}
}

// TestEntry: what an entry has by reference is a secret, even an ordinary word. An ordinary word that stands in the entry under a name
// such as AUTH_MODE is masked in the server's own texts alone.
func TestEntry(t *testing.T) {
	t.Parallel()
	cfg := Entry{Secrets: []string{"swordfish", "short", "line one\n  line two 22\n"},
		Env: []string{"COLOUR=swordfish", "AUTH_MODE=default", "API_KEY=abcdef-1"}}
	if got, want := slices.Sorted(slices.Values(cfg.Known())), []string{"abcdef-1", "line two 22", "swordfish"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := cfg.Redactor().Text("swordfish, short, line one, default"); got != "[masked], short, [masked], [masked]" {
		t.Error(got)
	}
}
