package deferred

import (
	"fmt"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// manyTools are n tools of n/100 servers.
func manyTools(n int) []*tool.Tool {
	var all []*tool.Tool
	for i := range n {
		all = append(all, newTool(fmt.Sprint("server", i/100), fmt.Sprint("make_widget_", i),
			"Makes a widget of the kind that is asked for, with care, and returns where it was put.", "", ""))
	}
	return all
}

// BenchmarkSurface: what every request pays for, and what a change of a surface of 10,000 tools costs.
func BenchmarkSurface(b *testing.B) {
	tools := manyTools(10000)
	l := newLoader(b, Config{}, Options{}, tools)
	full := surfaceOf("p", tools, nil)
	client := tool.Client{Name: "my-agent"}
	l.Surface(full, client)
	b.Run("same", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			l.Surface(full, client)
		}
	})
	b.Run("changed", func(b *testing.B) {
		b.ReportAllocs()
		fulls := [2]*tool.Surface{full, surfaceOf("p", tools[:9999], nil)}
		for i := 0; b.Loop(); i++ {
			l.Surface(fulls[i%2], client)
		}
	})
}
