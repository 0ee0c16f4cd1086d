package batch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestResultsAndErrorsShareTheirRoom holds that errors count like results, that the first calls of a batch keep theirs in whatever order they
// end, and that the memory of each is given back when its call ends.
func TestResultsAndErrorsShareTheirRoom(t *testing.T) {
	t.Parallel()
	const n, large = 12, 1 << 20
	b, freed := &batch{}, 0
	for i := range n {
		b.members = append(b.members, &member{call: &call{ID: fmt.Sprint(i)}, index: i})
	}
	for i := n - 1; i >= 0; i-- {
		m := b.members[i]
		m.Outcome = invoke.Outcome{Status: tool.StatusFailed, Free: func() { freed++ }}
		if text := strings.Repeat("x", large); i%2 == 0 {
			m.Err = &tool.RPCError{Code: -7, Message: "no", Raw: fmt.Appendf(nil, `{"code":-7,"message":"no","data":%q}`, text)}
		} else {
			m.Result = fmt.Appendf(nil, `{"content":[{"type":"text","text":%q}]}`, text)
		}
		if b.keep(m); freed != n-i {
			t.Fatalf("the memory of %d calls is given back when %d have ended", freed, n-i)
		}
	}
	reply := b.reply()
	if size := len(reply.Result); size > 2*maxResults {
		t.Errorf("the answer has %d bytes", size)
	}
	i := 0
	results, _ := rawjson.Get(rawjson.GetObject(reply.Result, "structuredContent"), "results")
	_ = rawjson.Elements(results, func(e []byte) bool {
		_, omitted := rawjson.Get(e, "omitted_bytes")
		_, isError := rawjson.Get(e, "error")
		_, isResult := rawjson.Get(e, "result")
		if whole := i < 7; omitted == whole || isError != (i%2 == 0) || isResult != (whole && !isError) {
			t.Errorf("call %d: omitted %t, error %t, result %t", i, omitted, isError, isResult)
		}
		if omitted && isError && !strings.Contains(string(e), `"error":{"code":-7,"message":"no"}`) {
			t.Errorf("call %d: %.200s", i, e)
		}
		i++
		return true
	})
	if i != n {
		t.Errorf("%d results", i)
	}
}
