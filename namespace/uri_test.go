package namespace

import (
	"strings"
	"testing"
)

func TestNormalURI(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ uri, want string }{
		{"file:///a/b.txt", "file:///a/b.txt"},
		{"FILE:///A/b", "file:///A/b"},
		{"HTTP://User@Example.COM:80/%7euser/%c3%a9?Q=%2f#F", "http://User@example.com/~user/%C3%A9?Q=%2F#F"},
		{"https://example.com:443", "https://example.com/"},
		{"https://example.com:", "https://example.com/"},
		{"https://example.com:8443?x", "https://example.com:8443/?x"},
		{"note://Host:443", "note://host:443"},
		{"https://É.example/é", "https://%C3%A9.example/%C3%A9"},
		{"https://%C3%89.example/", "https://%C3%A9.example/"},
		{"docs://a b", "docs://a%20b"},
		{"docs://a/x y", "docs://a/x%20y"},
		{"docs://a/100%", "docs://a/100%25"},
		{"docs://a/%zz", "docs://a/%25zz"},
		{"docs://a/%", "docs://a/%25"},
		{"file:///a/./b/../c", "file:///a/c"},
		{"file:///../../etc/passwd", "file:///etc/passwd"},
		{"file:///a/%2E%2e/b", "file:///b"},
		{"file:///a/..", "file:///"},
		{"file:///a/b/.", "file:///a/b/"},
		{"file:///a/...", "file:///a/..."},
		{"file:///a?x=/../y", "file:///a?x=/../y"},
		{"urn:ISBN:1", "urn:ISBN:1"},
		{"mailto:A@b", "mailto:A@b"},
		{"no scheme/../x", "no%20scheme/../x"},
		{"1x://Y", "1x://Y"},
		{"x+y-1.2://Y", "x+y-1.2://y"},
		{"", ""},
		{":", ":"},
	} {
		got := normalURI(c.uri)
		if got != c.want {
			t.Errorf("normalURI(%q) = %q, want %q", c.uri, got, c.want)
		}
		if again := normalURI(got); again != got {
			t.Errorf("normalURI(%q) = %q: not stable", got, again)
		}
	}
}

func TestLookOfURIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"file:///a", "FILE:///a", true},
		{"file:///a", "file:///A", true}, // not equal by RFC 3986, but for people and some file systems
		{"file:///a/b", "file:///a%2Fb", true},
		{"docs://é", "docs://e\u0301", true},
		{"docs://%C3%A9", "docs://é", true},
		{"docs://readme", "dосs://readme", true}, // Cyrillic
		{"docs://readme", "docs://read\u200bme", true},
		{"docs://readme", "docs://read%E2%80%8Bme", true},
		{"docs://a", "docs://b", false},
		{"docs://a", "docs://a/", false},
		{"docs://a?x", "docs://a#x", false},
		{"docs://a%2520", "docs://a%20", false}, // decoded once only
		{"file:///a", "https:///a", false},
	} {
		a, b := lookOf(normalURI(c.a)), lookOf(normalURI(c.b))
		if (a == b) != c.want {
			t.Errorf("%+q and %+q look like %+q and %+q, want equal %v", c.a, c.b, a, b, c.want)
		}
	}
}

func TestHubURIs(t *testing.T) {
	t.Parallel()
	for native, want := range map[string]string{
		"file:///a/b.txt":                "toolhub://s/file:///a/b.txt",
		"https://x.y/a%2Fb?c=d&e#f":      "toolhub://s/https://x.y/a%2Fb?c=d&e#f",
		"toolhub://other/x:y":            "toolhub://s/toolhub://other/x:y",
		"docs://a b":                     "toolhub://s/~docs%3A%2F%2Fa%20b",
		"docs://a%20b":                   "toolhub://s/docs://a%20b",
		"docs://é":                       "toolhub://s/~docs%3A%2F%2F%C3%A9",
		"file:///a/../b":                 "toolhub://s/~file%3A%2F%2F%2Fa%2F..%2Fb",
		"file:///a/%2e/b":                "toolhub://s/~file%3A%2F%2F%2Fa%2F%252e%2Fb",
		"x://[::1]/":                     "toolhub://s/~x%3A%2F%2F%5B%3A%3A1%5D%2F",
		"x:100%":                         "toolhub://s/~x%3A100%25",
		"~":                              "toolhub://s/~~",
		"":                               "toolhub://s/~",
		"x://\x00\xff\n":                 "toolhub://s/~x%3A%2F%2F%00%FF%0A",
		"x://a?q=../b":                   "toolhub://s/x://a?q=../b",
		"x:" + strings.Repeat("a", 5000): "toolhub://s/x:" + strings.Repeat("a", 5000),
	} {
		got := hubURI("s", native)
		if got != want {
			t.Errorf("hubURI(%q) = %q, want %q", native, got, want)
		}
		if server, back, ok := splitURI(got); server != "s" || back != native || !ok {
			t.Errorf("splitURI(%q) = %q, %q, %v", got, server, back, ok)
		}
	}
	for _, bad := range []string{"", "toolhub:", "toolhub://", "toolhub:///x", "toolhub://s", "toolhubs://s/x", "file:///x"} {
		if server, native, ok := splitURI(bad); ok {
			t.Errorf("splitURI(%q) = %q, %q", bad, server, native)
		}
	}
	if server, native, ok := splitURI("TOOLHUB://S/x:y"); server != "s" || native != "x:y" || !ok {
		t.Errorf("splitURI minds the case of scheme or host: %q, %q, %v", server, native, ok)
	}
}

func FuzzURI(f *testing.F) {
	for _, s := range []string{"file:///a", "docs://é/%20", "~x", "toolhub://s/x", "%", "a:%2", "x://a/../b?c#d", "http://h:80", "\xff", "//%C3%89",
		"x://{a}"} {
		f.Add(s, "x:y")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		shown := hubURI("a-server_1", a)
		if server, native, ok := splitURI(shown); !ok || server != "a-server_1" || native != a {
			t.Errorf("%q is shown as %q, which is %q of %q", a, shown, native, server)
		}
		for i := range len(shown) {
			if c := shown[i]; c != '%' && !mayStand(c) {
				t.Errorf("%q is shown as %q, which is no URI", a, shown)
				break
			}
		}
		if a != b && hubURI("s", a) == hubURI("s", b) {
			t.Errorf("%q and %q are shown alike", a, b)
		}
		if n := normalURI(a); normalURI(n) != n {
			t.Errorf("normalURI(%q) = %q, and of that %q", a, n, normalURI(n))
		}
		if normalURI(a) == normalURI(b) && lookOf(normalURI(a)) != lookOf(normalURI(b)) {
			t.Errorf("%q and %q are equal but do not look so", a, b)
		}
	})
}
