package invoke

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// prose is a text as agents send it: words, paths, identifiers, a little code.
const prose = `Rename the helper in internal/parser/lexer.go and update its callers. The function nextToken(s string) (kind int, err error)
is called from Parse and from the tests. Keep the order of the cases: if c == '"' && depth > 0 { return stringLiteral, nil }. See also
https://github.com/example/project/pull/1234#discussion_r987654 and commit 7c9e66797425de40. Ask for a review by 2026-11-24T15:43:56Z. `

// BenchmarkRedaction makes calls with 1 kB of arguments by turns: their records are redacted, or not. added-ns/call is what redaction adds to the
// quickest tenth of the calls, which nothing else has held up.
func BenchmarkRedaction(b *testing.B) {
	arguments := `{"n":1,"text":` + string(rawjson.Quote(strings.Repeat(prose, 2)+prose[:100])) + `}`
	p := newBench(b, tool.ValidateReject, ok(`{"content":[{"type":"text","text":"done"}]}`))
	p.unsynced(b)
	var took [2][]time.Duration
	for b.Loop() {
		for i, secrets := range []*secret.Masker{nil, secret.New([]byte("key"))} {
			p.opts.Secrets = secrets
			began := time.Now()
			if o := p.call(b.Context(), "mcp.s.t", arguments); o.Status != tool.StatusSucceeded {
				b.Fatalf("%s %s", o.Status, o.Result)
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	for i := range took {
		slices.Sort(took[i])
	}
	quick := func(all []time.Duration) float64 { return float64(all[len(all)/10].Nanoseconds()) }
	b.ReportMetric(quick(took[1])-quick(took[0]), "added-ns/call")
}
