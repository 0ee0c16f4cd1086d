package splice_test

import (
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
)

var (
	servers = splice.Place{Path: []string{"servers"}}
	deep    = splice.Place{Path: []string{"a", "b"}}
	listed  = splice.Place{Path: []string{"servers"}, List: true}
)

// TestPutAndTake: an entry looks like its neighbours; without it the file means what it meant.
func TestPutAndTake(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		format           splice.Format
		place            splice.Place
		text, want, then string // then: "" where it is text again
	}{
		{splice.JSON, servers, "{}", "{\n  \"servers\": {\n    \"it\": {\n      \"x\": true\n    }\n  }\n}", "{\n  \"servers\": {\n  }\n}"},
		{splice.JSON, servers, `{"servers": {}}`, `{"servers": {"it": {"x": true}}}`, ""},
		{splice.JSON, servers, `{"servers": {"a": 1}}`, `{"servers": {"a": 1, "it": {"x": true}}}`, ""},
		{splice.JSON, servers, "{\n\t\"servers\": {\n\t\t\"a\": 1 // one\n\t}\n}",
			"{\n\t\"servers\": {\n\t\t\"a\": 1, // one\n\t\t\"it\": {\n\t\t\t\"x\": true\n\t\t}\n\t}\n}", ""},
		{splice.JSON, servers, "{\n \"servers\": {\n  \"a\": 1, // one\n  // two\n }}",
			"{\n \"servers\": {\n  \"a\": 1, // one\n  // two\n  \"it\": {\n   \"x\": true\n  }\n }}",
			"{\n \"servers\": {\n  \"a\": 1 // one\n  // two\n }}"},
		{splice.JSON, deep, `{"a": {"c": 1}}`, `{"a": {"c": 1, "b": {"it": {"x": true}}}}`, `{"a": {"c": 1, "b": {}}}`},
		{splice.YAML, servers, "", "servers:\n  it:\n    x: true\n", ""},
		{splice.YAML, servers, "servers:\n    a: 1\n\n# end\nb: 2\n", "servers:\n    a: 1\n    it:\n      x: true\n\n# end\nb: 2\n", ""},
		{splice.YAML, servers, "servers: # mine\nb: 2", "servers: # mine\n  it:\n    x: true\nb: 2", "b: 2"},
		{splice.YAML, servers, "servers: {a: 1}\n", "servers: {\"it\": {\"x\": true}, a: 1}\n", "-"},
		{splice.YAML, servers, "servers:\n  a: |\n    text\n    # text\n", "servers:\n  a: |\n    text\n    # text\n  it:\n    x: true\n", "-"},
		{splice.YAML, deep, "a:\n  c: 1\n", "a:\n  c: 1\n  b:\n    it:\n      x: true\n", ""},
		{splice.YAML, listed, "servers:\n- name: a\n  x: 1\nb: 2\n", "servers:\n- name: a\n  x: 1\n- name: it\n  x: true\nb: 2\n", ""},
		{splice.TOML, servers, "a = 1", "a = 1\n\n[servers.it]\nx = true\n", "a = 1\n"},
		{splice.TOML, servers, "[servers.a]\nb = '''\n[servers.it]\n'''\n",
			"[servers.a]\nb = '''\n[servers.it]\n'''\n\n[servers.it]\nx = true\n", "-"},
	} {
		f, err := splice.Read(test.format, []byte(test.text))
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		with, err := f.Put(test.place, "it", splice.Object{{Key: "x", Value: true}})
		if err != nil {
			if !strings.Contains(test.text, "# text") { // a comment that is none: the file is left alone
				t.Errorf("%q: %v", test.text, err)
			}
			continue
		}
		if got := string(with.Bytes()); got != test.want {
			t.Errorf("%q\nhas become %q\nwant       %q", test.text, got, test.want)
		}
		then, err := with.Take(test.place, "it")
		if test.then == "-" {
			if err == nil {
				t.Errorf("%q: taken out, although that is not safe: %q", test.want, then.Bytes())
			}
			continue
		}
		if test.then == "" {
			test.then = test.text
		}
		if err != nil || string(then.Bytes()) != test.then {
			t.Errorf("%q without it: %v\n%q, want\n%q", test.want, err, then.Bytes(), test.then)
		}
	}
}
