package namespace

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// big returns catalogs of 50 tools each, with declarations of about 1.5 kB.
func big(tools int) []tool.Catalog {
	var out []tool.Catalog
	for s := range tools / 50 {
		c := tool.Catalog{Server: fmt.Sprintf("server-%03d", s), Source: tool.SourceMCP}
		for i := range 50 {
			native := fmt.Sprintf("do_something_useful_%03d", i)
			c.Tools = append(c.Tools, &tool.Tool{
				Name: tool.MCPName(c.Server, native), Server: c.Server, Native: native,
				Declaration: fmt.Appendf(nil, `{"name":%q,"description":%q,"inputSchema":{"type":"object"}}`, native,
					strings.Repeat("what it does ", 110)),
			})
		}
		out = append(out, c)
	}
	return out
}

func BenchmarkUpdate(b *testing.B) {
	for _, tools := range []int{1000, 10_000} {
		catalogs := big(tools)
		b.Run(fmt.Sprintf("first/%d", tools), func(b *testing.B) {
			for b.Loop() {
				n := newNamespace(b, nil, catalogs...)
				surface(b, n, DefaultProfile)
			}
		})
		b.Run(fmt.Sprintf("one-server/%d", tools), func(b *testing.B) {
			n := newNamespace(b, nil, catalogs...)
			surface(b, n, DefaultProfile)
			with := append(catalogs[:len(catalogs):len(catalogs)], server("new", "a", "b"))
			for i := 0; b.Loop(); i++ {
				n.Update([][]tool.Catalog{with, catalogs}[i%2])
			}
		})
		b.Run(fmt.Sprintf("nothing/%d", tools), func(b *testing.B) {
			n := newNamespace(b, nil, catalogs...)
			surface(b, n, DefaultProfile)
			for b.Loop() {
				n.Update(catalogs)
			}
		})
		// Whoever can choose names chooses them so that all of them look alike.
		twins := tool.Catalog{Server: "twins", Source: tool.SourceMCP}
		for i := range tools {
			native := fmt.Sprintf("x%s", strings.NewReplacer("0", "-", "1", "_").Replace(fmt.Sprintf("%014b", i)))
			twins.Tools = append(twins.Tools, newTool("twins", native+"y"))
		}
		b.Run(fmt.Sprintf("twins/%d", tools), func(b *testing.B) {
			for b.Loop() {
				newNamespace(b, nil, twins)
			}
		})
	}
}

func BenchmarkSurface(b *testing.B) {
	n := newNamespace(b, nil, big(10_000)...)
	for _, client := range []string{"", "claude-code", "augment-code"} {
		b.Run("client="+client, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s, err := n.Surface(DefaultProfile, tool.Client{Name: client})
				if err != nil {
					b.Fatal(err)
				}
				if _, ok := s.Resolve("server-007__do_something_useful_031"); !ok {
					b.Fatal("not found")
				}
			}
		})
	}
}

// manyLinks returns catalogs of 500 resources, 10 templates and 20 prompts each. Every second server's resources have
// URIs that the one before it has, too.
func manyLinks(resources int) []tool.Catalog {
	var out []tool.Catalog
	for s := range resources / 500 {
		var natives, prompts []string
		for i := range 500 {
			natives = append(natives, fmt.Sprintf("file:///srv/project-%03d/src/module/file_%05d.go", s/2, i))
		}
		for i := range 10 {
			natives = append(natives, fmt.Sprintf("repo://%03d-%d/{owner}/{name}/contents{/path*}{?ref}", s, i))
		}
		for i := range 20 {
			prompts = append(prompts, fmt.Sprintf("do_something_useful_%03d", i))
		}
		out = append(out, withLinks(withPrompts(tool.Catalog{Server: fmt.Sprintf("server-%03d", s), Source: tool.SourceMCP}, prompts...), natives...))
	}
	return out
}

func BenchmarkFeatures(b *testing.B) {
	const resources = 10_000
	catalogs := manyLinks(resources)
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n := newNamespace(b, nil, catalogs...)
			if got := len(features(b, n, DefaultProfile).Resources); got != resources {
				b.Fatal(got)
			}
		}
	})
	b.Run("one-server", func(b *testing.B) {
		n := newNamespace(b, nil, catalogs...)
		features(b, n, DefaultProfile)
		with := append(catalogs[:len(catalogs):len(catalogs)], withLinks(server("new", "a"), "x:y"))
		for i := 0; b.Loop(); i++ {
			n.Update([][]tool.Catalog{with, catalogs}[i%2])
		}
	})
	b.Run("tools-only", func(b *testing.B) {
		n := newNamespace(b, nil, catalogs...)
		features(b, n, DefaultProfile)
		with := append(catalogs[:len(catalogs):len(catalogs)], server("new", "a"))
		for i := 0; b.Loop(); i++ {
			n.Update([][]tool.Catalog{with, catalogs}[i%2])
		}
	})
	b.Run("nothing", func(b *testing.B) {
		n := newNamespace(b, nil, catalogs...)
		features(b, n, DefaultProfile)
		for b.Loop() {
			n.Update(catalogs)
		}
	})
	f := features(b, newNamespace(b, nil, catalogs...), DefaultProfile)
	for name, uri := range map[string]string{
		"listed":   f.Resources[resources-1].Shown,
		"claimed":  f.Resources[0].Native,
		"template": "repo://007-3/golang/go/contents/src/net/http?ref=master",
		"nobody":   "repo://nobody/golang/go/contents/src/net/http?ref=master",
	} {
		b.Run("owner/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.Owner(uri)
			}
		})
	}
}

// 10,000 templates that begin alike, all of which a URI has to be matched with.
func BenchmarkTemplatesOfOnePrefix(b *testing.B) {
	var natives []string
	for i := range 10_000 {
		natives = append(natives, fmt.Sprintf("x://{a}/%05d/{b}{?c,d}", i))
	}
	f := features(b, newNamespace(b, nil, withLinks(server("a"), natives...), withLinks(server("b"), natives...)), DefaultProfile)
	for b.Loop() {
		if servers, _ := f.Owner("x://some/value/of/a/path?c=1&d=2"); len(servers) != 0 {
			b.Fatal(servers)
		}
	}
}
