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
