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
		{splice.JSON, servers, "{\"servers\": {}} // mine", "{\"servers\": {\"it\": {\"x\": true}}} // mine", ""},
		{splice.JSON, servers, `{"servers": {"a": 1}}`, `{"servers": {"a": 1, "it": {"x": true}}}`, ""},
		{splice.JSON, servers, "{\n\t\"servers\": {\n\t\t\"a\": 1 // one\n\t}\n}",
			"{\n\t\"servers\": {\n\t\t\"a\": 1, // one\n\t\t\"it\": {\n\t\t\t\"x\": true\n\t\t}\n\t}\n}", ""},
		{splice.JSON, servers, "{\n \"servers\": {\n  \"a\": 1, // one\n  // two\n }}",
			"{\n \"servers\": {\n  \"a\": 1, // one\n  // two\n  \"it\": {\n   \"x\": true\n  },\n }}", ""},
		{splice.JSON, servers, "{\"servers\": {\"a\": 1,},}", "{\"servers\": {\"a\": 1, \"it\": {\"x\": true},},}", ""},
		{splice.JSON, deep, `{"a": {"c": 1}}`, `{"a": {"c": 1, "b": {"it": {"x": true}}}}`, `{"a": {"c": 1, "b": {}}}`},
		{splice.YAML, servers, "", "servers:\n  it:\n    x: true\n", ""},
		{splice.YAML, servers, "servers:\n    a: 1\n\n# end\nb: 2\n", "servers:\n    a: 1\n    it:\n      x: true\n\n# end\nb: 2\n", ""},
		{splice.YAML, servers, "servers: # mine\nb: 2", "servers: # mine\n  it:\n    x: true\nb: 2", "b: 2"},
		{splice.YAML, servers, "servers: {a: 1}\n", "servers: {a: 1, it: {\"x\": true}}\n", ""},
		{splice.YAML, servers, "servers:\n  a: |\n    text\n    # text\n", "servers:\n  a: |\n    text\n    # text\n  it:\n    x: true\n", "-"},
		{splice.YAML, servers, "---\nb: 2\n...\n", "---\nb: 2\nservers:\n  it:\n    x: true\n...\n", ""},
		{splice.YAML, servers, "# none\n...\n", "# none\nservers:\n  it:\n    x: true\n...\n", ""},
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
		if err != nil || string(then.Bytes()) != test.then || then.Bytes() == nil { // nil is no file at all
			t.Errorf("%q without it: %v\n%q, want\n%q", test.want, err, then.Bytes(), test.then)
		}
	}
}

// TestPutAndTakePlain: a key of an entry, and a plain text of a list, also in brackets. Comments and all else stay.
func TestPutAndTakePlain(t *testing.T) {
	t.Parallel()
	key, items := splice.Place{Path: []string{"s", "a"}}, splice.Place{Path: []string{"s", "a", "off"}, List: true}
	for _, test := range []struct {
		format     splice.Format
		place      splice.Place
		name       string
		value      any
		text, want string
	}{
		{splice.YAML, key, "disabled", true, "s:\n  a:\n    b: 1 # one\n# end\n", "s:\n  a:\n    b: 1 # one\n    disabled: true\n# end\n"},
		{splice.YAML, key, "disabled", true, "s:\n  a: {b: 1, c: [x, {y: \"}\"}], d: it's} # one\n",
			"s:\n  a: {b: 1, c: [x, {y: \"}\"}], d: it's, disabled: true} # one\n"},
		{splice.YAML, key, "disabled", true, "s: {a: {\n  b: ',]', # it, too\n  c: 1 # two\n  }}\n",
			"s: {a: {\n  b: ',]', # it, too\n  c: 1, disabled: true # two\n  }}\n"},
		{splice.YAML, key, "disabled", true, "s: {a: {}}\n", "s: {a: {disabled: true}}\n"},
		{splice.JSON, key, "disabled", true, "{\"s\": {\"a\": {\"b\": 1}}} // one\n", "{\"s\": {\"a\": {\"b\": 1, \"disabled\": true}}} // one\n"},
		{splice.YAML, key, "off", []string{"x"}, "s:\n  a: {b: 1}\n", "s:\n  a: {b: 1, \"off\": [\"x\"]}\n"},
		{splice.YAML, items, "it", nil, "s:\n  a:\n    off: [x, 'y'] # mine\n", "s:\n  a:\n    off: [x, 'y', it] # mine\n"},
		{splice.YAML, items, "it", nil, "s:\n  a:\n    off:\n    - x # one\n    # end\n  b: {}\n",
			"s:\n  a:\n    off:\n    - x # one\n    - it\n    # end\n  b: {}\n"},
		{splice.JSON, items, "it", nil, "{\"s\": {\"a\": {\"off\": [\"x\", \"y\"]}}}", "{\"s\": {\"a\": {\"off\": [\"x\", \"y\", \"it\"]}}}"},
		{splice.JSON, items, "it", nil, "{\"s\": {\"a\": {\n \"off\": [\n  \"x\" // one\n ]}}}",
			"{\"s\": {\"a\": {\n \"off\": [\n  \"x\", // one\n  \"it\"\n ]}}}"},
	} {
		f, err := splice.Read(test.format, []byte(test.text))
		if err != nil {
			t.Fatal(err)
		}
		with, err := f.Put(test.place, test.name, test.value)
		if err != nil || string(with.Bytes()) != test.want {
			t.Errorf("%q: %v", test.text, err)
			if err == nil {
				t.Errorf("has become\n%q, want\n%q", with.Bytes(), test.want)
			}
			continue
		}
		if then, err := with.Take(test.place, test.name); err != nil || string(then.Bytes()) != test.text {
			t.Errorf("%q without it: %v", test.want, err)
			if err == nil {
				t.Errorf("%q, want\n%q", then.Bytes(), test.text)
			}
		}
	}
}

// TestTakeTOML: an entry of TOML is taken out in each form that the format has for it, and is put back.
func TestTakeTOML(t *testing.T) {
	t.Parallel()
	place := splice.Place{Path: []string{"s"}}
	for text, want := range map[string]string{
		"[s]\nc = { a = 2 }\nit = { a = 1 }":                                        "[s]\nc = { a = 2 }\n",
		"[s]\nit = { a = 1, b = [\"x\"] } # mine\nc = { a = 2 }\n":                  "[s]\nc = { a = 2 }\n",
		"m = 1\n[s]\nit.a = 1\nit.b = [\n  \"x\",\n]\nc = { a = 2 }\n[t]\nit = 1\n": "m = 1\n[s]\nc = { a = 2 }\n[t]\nit = 1\n",
		"s.\"it\".a = 1\ns.it.b = 2\ns.c = {}\n":                                    "s.c = {}\n",
		"[s]\nc = {}\n\n[s.it]\na = 1\nb = { x = 1 }\n[s.it.env]\nX = \"y\"\n[t]\n": "[s]\nc = {}\n[t]\n",
	} {
		f, err := splice.Read(splice.TOML, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		entry, err := f.Text(place, "it")
		if err != nil {
			t.Fatal(err)
		}
		without, err := f.Take(place, "it")
		if err != nil || string(without.Bytes()) != want {
			t.Errorf("%q without it: %v", text, err)
			continue
		}
		if back, err := without.PutText(place, "it", entry); err != nil || !splice.Equal(back.Root, f.Root) {
			t.Errorf("%q with %q: %v", want, entry, err)
		}
		bare, err := splice.Read(splice.TOML, []byte("m = 1\n\n[t]\nx = 1\n")) // another program has written it without the empty table
		if err != nil {
			t.Fatal(err)
		}
		if back, err := bare.PutText(place, "it", entry); err != nil || !splice.Equal(back.Entry(place, "it").Value, f.Entry(place, "it").Value) {
			t.Errorf("%q with %q: %v", bare.Bytes(), entry, err)
		}
	}
	f, err := splice.Read(splice.TOML, []byte("s = { it = { a = 1 } }\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Take(place, "it"); err == nil {
		t.Error("an entry within braces was taken out")
	}
}

// TestPutBackYAML: an entry that was taken out comes back, also where it was the only one, and where others have another indent by now.
func TestPutBackYAML(t *testing.T) {
	t.Parallel()
	for text, p := range map[string]splice.Place{
		"b: 1\ns:\n    a:\n        x: |\n          one\n         # two\n\n        y: 2\n": {Path: []string{"s"}},
		"s:\n- name: a\n  x: 1\nb: 2\n": {Path: []string{"s"}, List: true},
		"s:\n    a:\n        x: |\n          one\n             \n          two\nb: 1\n": {Path: []string{"s"}},
		"b: 2\ns:\n    - x: 1\n      name: a":                                           {Path: []string{"s"}, List: true},
		"s:\n  a: {x: 1}\n":                                                             {Path: []string{"s"}},
	} {
		f, err := splice.Read(splice.YAML, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		entry, err := f.Text(p, "a")
		if err != nil {
			t.Fatal(err)
		}
		without, err := f.Take(p, "a")
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if back, err := without.PutText(p, "a", entry); err != nil || !splice.Equal(back.Root.Member("s"), f.Root.Member("s")) {
			t.Errorf("%q with %q: %v", without.Bytes(), entry, err)
		}
		other, err := without.Put(p, "other", splice.Object{{Key: "x", Value: true}})
		if err == nil {
			other, err = splice.Read(splice.YAML, append(other.Bytes(), "# end\n"...))
		}
		if err != nil {
			t.Fatal(err)
		}
		if back, err := other.PutText(p, "a", entry); err != nil || !splice.Equal(back.Entry(p, "a").Value, f.Entry(p, "a").Value) {
			t.Errorf("%q with %q: %v", other.Bytes(), entry, err)
		}
	}
}

// FuzzSplice: whatever a file holds, an entry is put into it and taken out again, or the edit is refused.
func FuzzSplice(f *testing.F) {
	for _, text := range []string{"{\"s\": {\"a\": 1}}", "s:\n  a: {x: 1}\n", "s:\n- name: a\n", "[s.a]\nx = 1\n", "[s]\na = {x = 1}\n", "d: &d {a: 1}\ns: *d\n",
		"d: &d\n  s: {a: 1}\n<<: *d\n", "d: &d [{name: a}]\ns: *d\n", "s:\n  - &a {name: a}\n  - *a\n", "s: {} # x\n", "\ufeffs:\r\n  a:\r\n", "s: [a, b]\n", "s:\n {}", "{\"s\": {}} // end", "s: &d {0}\ns: *d",
		"s:\n  0:\n  00", "{\"s\": {\"a\": 1, // */\n\"b\": 2}}", "s: {a: 1, # one\n  # two\n  b: 2,}\n", "{s: {# one\n a: {x: 1}}}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, format := range []splice.Format{splice.JSON, splice.YAML, splice.TOML} {
			file, err := splice.Read(format, []byte(text))
			if err != nil {
				continue
			}
			for _, p := range []splice.Place{{Path: []string{"s"}}, {Path: []string{"s", "t"}}, {Path: []string{"s"}, List: true}} {
				value := any(splice.Object{{Key: "x", Value: true}})
				if p.List && format == splice.TOML {
					continue // it has none
				}
				if p.List && format == splice.JSON {
					value = nil // only texts are taken out of its lists
				}
				if with, err := file.Put(p, "it", value, "why"); err == nil {
					if then, err := with.Take(p, "it"); err == nil && then.Entry(p, "it") != nil {
						t.Errorf("%q: it is still there: %q", text, then.Bytes())
					}
					if back := splice.Undo(with, with); back == nil || string(back.Bytes()) != text {
						t.Errorf("%q: not what it was: %q", text, with.Bytes())
					}
				}
				for _, e := range file.Entries(p) {
					entry, textErr := file.Text(p, e.Name)
					without, err := file.TakeWhole(p, e.Name)
					if err != nil || textErr != nil {
						continue
					}
					if back, err := without.PutText(p, e.Name, entry); err == nil && !splice.Equal(back.Entry(p, e.Name).Value, e.Value) {
						t.Errorf("%q: %q has come back as %q", text, entry, back.Bytes())
					}
				}
			}
		}
	})
}

// TestPutWithComments: comments of an entry go above it. A mapping in braces that is empty becomes a block for that, where it can.
func TestPutWithComments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"s:\n":                       "s:\n  # why\n  a: x\n",
		"# one\ns: {} # two\nt: 1\n": "# one\ns: # two\n  # why\n  a: x\nt: 1\n",
		"s: { }":                     "s:\n  # why\n  a: x\n",
		"s: {}\r\nt: {}\r\n":         "s:\r\n  # why\r\n  a: x\r\nt: {}\r\n",
		"{s: {}}\n":                  "{s: {\n  # why\n  a: \"x\"}}\n",
		"{\n  s: {}\n}\n":            "{\n  s: {\n    # why\n    a: \"x\"}\n}\n",
		"s: {b: 1}\n":                "s: {b: 1,\n  # why\n  a: \"x\"}\n",
		"s: {b: 1,} # one\r\nt: 1":   "s: {b: 1,\r\n  # why\r\n  a: \"x\",} # one\r\nt: 1",
		"s: &anchor {}\n":            "s: &anchor {\n  # why\n  a: \"x\"}\n",
		"s: {\n  b: 1, # one\n}\n":   "s: {\n  b: 1,\n  # why\n  a: \"x\", # one\n}\n",
		"{t: 1}":                     "{t: 1, s: {\n  # why\n  a: \"x\"}}",
	} {
		f, err := splice.Read(splice.YAML, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		with, err := f.Put(splice.Place{Path: []string{"s"}}, "a", "x", "why")
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if string(with.Bytes()) != want {
			t.Errorf("%q has become\n%q, want\n%q", text, with.Bytes(), want)
		} else if back, err := with.TakeWhole(splice.Place{Path: []string{"s"}}, "a"); err != nil {
			t.Errorf("%q: %v", want, err)
		} else if strings.Contains(text, "{b") && string(back.Bytes()) != text || strings.Contains(string(back.Bytes()), "why") {
			t.Errorf("%q without it: %q", text, back.Bytes())
		}
	}
}

// TestPutRule adds a mapping to a list whose items another key names, and leaves all else alone.
func TestPutRule(t *testing.T) {
	t.Parallel()
	place := splice.Place{Path: []string{"policy", "rules"}, List: true, Key: "id"}
	for _, test := range []struct {
		format     splice.Format
		text, want string
	}{
		{splice.YAML, "", "policy:\n  rules:\n    # why\n    - id: it\n      match: [\"a\"]\n"},
		{splice.YAML, "policy:\n  rules: # mine\n  - {match: x, then: deny} # never\n", "policy:\n  rules: # mine\n  - {match: x, then: deny} # never\n  # why\n  - id: it\n    match: [\"a\"]\n"},
		{splice.YAML, "policy: {mode: default}\n", "policy: {mode: default, rules: [\n # why\n {\"id\": \"it\", \"match\": [\"a\"]}]}\n"},
		{splice.JSON, "{\"policy\": {\"rules\": [{\"then\": \"deny\"}]}}", "{\"policy\": {\"rules\": [{\"then\": \"deny\"},\n  // why\n  {\"id\": \"it\", \"match\": [\"a\"]}]}}"},
		{splice.JSON, "", "{\n \"policy\": {\n \"rules\": [\n // why\n {\n \"id\": \"it\",\n \"match\": [\"a\"]\n }\n ]\n }\n}"},
		{splice.JSON, "{}", "{\n // why\n \"policy\": {\n \"rules\": [{\n \"id\": \"it\",\n \"match\": [\"a\"]\n }]\n }\n}"},
	} {
		f, err := splice.Read(test.format, []byte(test.text))
		if err != nil {
			t.Fatal(err)
		}
		with, err := f.Put(place, "it", splice.Object{{Key: "match", Value: []string{"a"}}}, "why")
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		if strings.Join(strings.Fields(string(with.Bytes())), " ") != strings.Join(strings.Fields(test.want), " ") {
			t.Errorf("%q has become\n%q, want\n%q", test.text, with.Bytes(), test.want)
		}
		if again, err := with.Put(place, "it", splice.Object{}); err == nil {
			t.Errorf("%q has it twice: %q", test.text, again.Bytes())
		}
	}
}

// TestTake takes out what stands first, in the middle and last.
func TestTake(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		format     splice.Format
		place      splice.Place
		text, want string
	}{
		{splice.YAML, servers, "servers: {it: {x: [1, 2]}, a: 1}\n", "servers: {a: 1}\n"},
		{splice.YAML, servers, "servers: {a: 1, \"it\": 'x, y', b: 2}\n", "servers: {a: 1, b: 2}\n"},
		{splice.YAML, servers, "servers: {it: 1}\n", "servers: {}\n"},
		{splice.YAML, listed, "servers: [it, a]\n", "servers: [a]\n"},
		{splice.YAML, listed, "servers:\n  - it\n  # a\n  - a\n", "servers:\n  # a\n  - a\n"},
		{splice.JSON, listed, `{"servers": ["it", "a"]}`, `{"servers": [ "a"]}`},
		{splice.JSON, listed, `{"servers": ["a", "it", "b"]}`, `{"servers": ["a", "b"]}`},
	} {
		f, err := splice.Read(test.format, []byte(test.text))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.Take(test.place, "it"); err != nil || string(got.Bytes()) != test.want {
			t.Errorf("%q: %v, want %q, got %+v", test.text, err, test.want, got)
		}
	}
}

// TestTakeWhole takes the comments of an entry, and no other ones.
func TestTakeWhole(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		format     splice.Format
		text, want string
	}{
		{splice.YAML, "servers:\n  # a\n  a: 1\n  # it\n  # it, too\n  it: 1 # one\n  # b\n  b: 1\n", "servers:\n  # a\n  a: 1\n  # b\n  b: 1\n"},
		{splice.YAML, "servers:\n  # all\n\n  it: 1\n  b: 1\n", "servers:\n  # all\n\n  b: 1\n"},
		{splice.YAML, "# all\nservers: # these\n  it: 1\n  b: 1\n", "# all\nservers: # these\n  b: 1\n"},
		{splice.YAML, "servers: {a: 1,\n  # it\n  it: 1,\n  # b\n  b: 1}\n", "servers: {a: 1,\n  # b\n  b: 1}\n"},
		{splice.YAML, "servers: {\n  # it\n  it: 1,\n  b: 1}\n", "servers: {\n  b: 1}\n"},
		{splice.YAML, "servers: {a: 1, # a\n  # it\n  it: 1, # one\n  b: 1}\n", "servers: {a: 1, # a\n  # one\n  b: 1}\n"},
		{splice.YAML, "servers: {\n  a: 1, # a\n  # it\n  it: 1\n}\n", "servers: {\n  a: 1, # a\n}\n"},
		{splice.YAML, "servers: {\n  a: 1, # a\n  # it\n  it: 1,\n}\n", "servers: {\n  a: 1, # a\n}\n"},
		{splice.YAML, "servers: {a: 1, # a\n  # it\n  it: 1}\n", "servers: {a: 1, # a\n  }\n"},
		{splice.YAML, "servers: {\n  # it\n  it: 1,\n}\n", "servers: {\n}\n"},
		{splice.YAML, "servers: {\n  # all\n\n  it: 1,\n}\n", "servers: {\n  # all\n}\n"},
		{splice.JSON, "{\"servers\": {\n  // a\n  \"a\": 1,\n  // it\n  \"it\": 1,\n  // b\n  \"b\": 1\n}}",
			"{\"servers\": {\n  // a\n  \"a\": 1,\n  // b\n  \"b\": 1\n}}"},
		{splice.JSON, "{\"servers\": {\n  /* a */\n  \"a\": 1,\n  /* it\n     too */\n  // this\n  /* it */\n  \"it\": 1,\n  \"b\": 1\n}}",
			"{\"servers\": {\n  /* a */\n  \"a\": 1,\n  /* it\n     too */\n  // this\n  /* it */\n  \"b\": 1\n}}"},
		{splice.JSON, "{\"servers\": {\n  \"a\": 1, /* a\n  a */\n  \"it\": 1\n}}", "{\"servers\": {\n  \"a\": 1 /* a\n  a */\n}}"},
		{splice.JSON, "{\"servers\": {\n  /* a */\n  \"a\": 1, \"it\": 1\n}}", "{\"servers\": {\n  /* a */\n  \"a\": 1\n}}"},
		{splice.JSON, "{\"servers\": {\n  /* all */\n\n  \"it\": 1,\n  \"b\": 1\n}}", "{\"servers\": {\n  /* all */\n  \"b\": 1\n}}"},
		{splice.JSON, "{\"servers\": {\n  \"a\": 1, // a\n  // it\n  \"it\": 1\n}}", "{\"servers\": {\n  \"a\": 1 // a\n}}"},
	} {
		f, err := splice.Read(test.format, []byte(test.text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.TakeWhole(servers, "it")
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
		} else if string(got.Bytes()) != test.want {
			t.Errorf("%q\nhas become %q\nwant       %q", test.text, got.Bytes(), test.want)
		}
	}
}
