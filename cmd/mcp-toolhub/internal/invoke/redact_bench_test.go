package invoke

import (
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/sensitive"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// prose is a text as agents send it: words, paths, identifiers, a little code.
const prose = `Rename the helper in internal/parser/lexer.go and update its callers. The function nextToken(s string) (kind int, err error)
is called from Parse and from the tests. Keep the order of the cases: if c == '"' && depth > 0 { return stringLiteral, nil }. See also
https://github.com/example/project/pull/1234#discussion_r987654 and commit 7c9e66797425de40. Ask for a review by 2026-11-24T15:43:56Z. `

// BenchmarkRedaction compares calls with 1 kB of arguments whose records are redacted with calls whose records are not.
func BenchmarkRedaction(b *testing.B) {
	arguments := `{"n":1,"text":` + string(rawjson.Quote(strings.Repeat(prose, 2)+prose[:100])) + `}`
	for name, secrets := range map[string]*sensitive.Masker{"off": nil, "on": sensitive.New([]byte("key"))} {
		b.Run(name, func(b *testing.B) {
			p := newBench(b, tool.ValidateReject, ok(`{"content":[{"type":"text","text":"done"}]}`))
			p.unsynced(b)
			p.opts.Secrets = secrets
			b.SetBytes(int64(len(arguments)))
			b.ReportAllocs()
			for b.Loop() {
				if o := p.call(b.Context(), "mcp.s.t", arguments); o.Status != tool.StatusSucceeded {
					b.Fatalf("%s %s", o.Status, o.Result)
				}
			}
		})
	}
}
