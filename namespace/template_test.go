package namespace

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/yosida95/uritemplate/v3"
)

func TestTemplateMatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		template string
		yes, no  []string
	}{
		{"file:///{+path}", []string{"file:///a/b.txt", "file:///", "FILE:///a?x#y", "file:///%C3%A9"}, []string{"file://a/b", "files:///a"}},
		{"note://{id}", []string{"note://1", "note://a:b@c", "note://a%2Fb", "NOTE://é"}, []string{"note://a/b", "note://a?b", "note:/a"}},
		{"repo://{owner}/{repo}/contents{/path*}", []string{"repo://a/b/contents", "repo://a/b/contents/c/d"},
			[]string{"repo://a/contents", "repo://a/b/c/contents/d"}},
		{"x:{/a,b}", []string{"x:", "x:/1", "x:/1/2"}, []string{"x:/1/2/3", "x:1"}},
		{"x:{a,b}.{c}", []string{"x:1,2.json", "x:.", "x:1.2.3"}, []string{"x:1", "x:a/b.c"}},
		{"x:a{.ext}", []string{"x:a", "x:a.json", "x:a.b.c"}, []string{"x:ab", "x:a.b/c"}},
		{"x:a{#frag}", []string{"x:a", "x:a#b/c"}, []string{"x:ab"}},
		{"x:a{;p,q*}", []string{"x:a", "x:a;p=1", "x:a;other=2;p", "x:a;p="}, []string{"x:a?p=1", "x:ap=1", "x:a;p=1/b"}},
		{"s://f{?q,limit}", []string{"s://f", "s://f?q=1", "s://f?limit=2&q=1", "s://f?q", "s://f?q=a=b"},
			[]string{"s://f?other=1", "s://f?q=1&other=2", "s://f&q=1", "s://fq=1", "s://f?q=1#x"}},
		{"s://f?fixed=1{&q}", []string{"s://f?fixed=1", "s://f?fixed=1&q=2"}, []string{"s://f?fixed=2&q=2", "s://f?fixed=1&z=2"}},
		{"s://f{?q*}", []string{"s://f?any=1&thing=2"}, []string{"s://g?any=1"}},
		{"s://f{?q}/tail", []string{"s://f/tail", "s://f?q=1/tail"}, []string{"s://f?q=1/tai"}},
		{"HTTP://Example.COM/{x}", []string{"http://example.com/A", "http://EXAMPLE.com/a"}, []string{"http://example.org/a"}},
		{"http://Host{x}/Y", []string{"http://host1/Y", "http://HOSTa/Y"}, []string{"http://host1/y"}},
		{"http://{host}.example.com/Y", []string{"http://a.example.COM/Y"}, []string{"http://a.example.com/y"}},
		{"docs://é/{x}", []string{"docs://%c3%a9/1", "docs://é/1"}, []string{"docs://e/1"}},
		{"docs://%7ea/{x}", []string{"docs://~a/1"}, nil},
		{"file:///pub/{+p}", []string{"file:///pub/a/../b"}, []string{"file:///pub/../etc/passwd", "file:///pub/%2e%2e/etc"}},
		{"{+any}", []string{"a:b", ""}, nil},
		{"x:{a:3}", []string{"x:abc"}, nil},
		{"plain:x", []string{"plain:x"}, []string{"plain:xy"}},
	} {
		tmpl, ok := parseTemplate(c.template)
		if !ok {
			t.Errorf("%q cannot be read", c.template)
			continue
		}
		for _, uri := range c.yes {
			if !tmpl.matches(normalURI(uri)) {
				t.Errorf("%q does not match %q", c.template, uri)
			}
		}
		for _, uri := range c.no {
			if tmpl.matches(normalURI(uri)) {
				t.Errorf("%q matches %q", c.template, uri)
			}
		}
	}
	for _, bad := range []string{"x:{", "x:}", "x:{}", "x:{a", "x:a}b{c}", "x:{+}", "x:{a b}", "x:{a,}", "x:{{a}}", "x:{a:0}", "x:{a:x}",
		"x:{=a}", "x:" + strings.Repeat("{a}", maxParts+1), strings.Repeat("x", maxTemplate) + "{a}"} {
		if _, ok := parseTemplate(bad); ok {
			t.Errorf("%.40q is read", bad)
		}
	}
}

func TestTemplateShapes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"file:///{+path}", "file:///{+p}", true},
		{"FILE:///{+path}", "file:///{+path}", true},
		{"file:///{+path}", "file:///{path}", false},
		{"docs://É/{x}", "docs://%c3%a9/{x}", true},
		{"s:{?q}", "s:{?q}", true},
		{"s:{?q}", "s:{?r}", false},
		{"s:{/a,b}", "s:{/c,d}", true},
		{"s:{/a,b}", "s:{/c}", false},
	} {
		a, _ := parseTemplate(c.a)
		b, _ := parseTemplate(c.b)
		if (a.shape == b.shape) != c.want {
			t.Errorf("%q and %q have the shapes %q and %q", c.a, c.b, a.shape, b.shape)
		}
	}
}

// Whatever a library that implements RFC 6570 makes of a template is matched by it, and its expansion of the hub's form is
// the hub's form of its expansion.
func checkExpansion(t *testing.T, text string, values ...string) {
	t.Helper()
	reference, err := uritemplate.New(text)
	if err != nil {
		return
	}
	tmpl, ok := parseTemplate(text)
	if !ok {
		return
	}
	for mask := range 4 {
		vars := uritemplate.Values{}
		for i, name := range reference.Varnames() {
			switch (mask + i) % 4 {
			case 0, 1:
				vars.Set(name, uritemplate.String(values[i%len(values)]))
			case 2:
				vars.Set(name, uritemplate.List(values...))
			}
		}
		uri, err := reference.Expand(vars)
		if err != nil || len(uri) > maxMatched {
			continue
		}
		// Dots that a value brings in can lead anywhere; normal forms have none.
		if normal := normalURI(uri); !strings.Contains(unescape(uri), "/.") && sameAuthority(uri, normal) && !tmpl.matches(normal) {
			t.Errorf("%q does not match its expansion %q (%q)", text, uri, normal)
		}
		if strings.HasPrefix(text, "~") {
			continue
		}
		form, err := uritemplate.New(hubTemplate("s", text))
		if err != nil {
			t.Errorf("the hub's form of %q: %v", text, err)
			continue
		}
		shown, err := form.Expand(vars)
		if server, native, ok := splitURI(shown); err != nil || server != "s" || !ok || native != uri && !strings.HasPrefix(uri, "~") {
			t.Errorf("%q: %q is %q of %q, want %q", text, shown, native, server, uri)
		}
	}
}

// sameAuthority reports whether normalizing took nothing from uri, such as a default port, that a variable may have put in.
func sameAuthority(uri, normal string) bool {
	_, authority, _, _ := splitAtParts(uri)
	return !strings.Contains(authority, ":") && len(authority) > 0 && !strings.HasPrefix(normal, "http") && !strings.Contains(authority, "%")
}

func TestExpansionsMatch(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"file:///{+path}", "note://h/{id}", "repo://x/{owner}/{repo}/contents{/path*}", "x://h/{a,b}.{c}", "x://h/a{.ext,y}",
		"x://h/a{#frag,y}", "x://h/a{;p,q*}", "s://h/f{?q,limit*}", "s://h/f?x=1{&q,r}", "s://h/{a:3}{b*}", "s://h/{+a,b}/tail", "s://h{/a,b,c}",
		"s://h/é/{a}", "s://h/%7e/{a}"} {
		checkExpansion(t, text, "v", "a/b c", "é?&=#;,", "100%")
		checkExpansion(t, text, "")
	}
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"file:///{+path}", "x://h/{a,b}{?c,d*}{&e}", "x://{h}/{/a}{;b}{#c}", "{+any}", "{", "x:{a:3}"} {
		f.Add(s, "value/é %", "file:///a")
	}
	f.Fuzz(func(t *testing.T, text, value, uri string) {
		checkExpansion(t, text, value)
		checkExpansion(t, "x://h/"+text, value, uri)
		if tmpl, ok := parseTemplate(text); ok {
			tmpl.matches(normalURI(uri))
		}
	})
}

// Nobody can stall the hub with a template or a URI.
func TestMatchingIsBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ template, uri string }{
		{strings.Repeat("{+a}", maxParts), strings.Repeat("a", maxMatched)},
		{strings.Repeat("{?a*}", maxParts), strings.Repeat("?a&", maxMatched/3)},
		{strings.Repeat("{+a}{?b*}", maxParts/2), strings.Repeat("?", maxMatched)},
		{strings.Repeat("{+a}{&b*}", maxParts/2), strings.Repeat("&=", maxMatched/2)},
		{strings.Repeat("{/a,b,c,d,e,f,g,h}", maxParts), strings.Repeat("/a", maxMatched/2)},
		{strings.Repeat("{+a}b", maxParts/2), strings.Repeat("ab", maxMatched/2)},
		{strings.Repeat("{+a}"+strings.Repeat("b", 28), maxParts/2), strings.Repeat("b", maxMatched)},
	} {
		tmpl, ok := parseTemplate(c.template)
		if !ok {
			t.Fatalf("%.40q cannot be read", c.template)
		}
		began := time.Now()
		tmpl.matches(c.uri)
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("%.40q takes %v", c.template, took)
		}
		t.Log(fmt.Sprintf("%.40q", c.template), time.Since(began))
	}
}
