package invoke

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// silent is a server that never answers.
type silent struct{}

func (silent) Resource(ctx context.Context, _ *Call, _, _ string) (tool.Reply, error) {
	<-ctx.Done()
	return tool.Reply{}, ctx.Err()
}

func (silent) File(string, string, int64) ([]byte, error) { return nil, errors.New("no file") }

// TestASlowServerHoldsTheAnswerForTenSeconds has a server never answer resources/read: the call waits 10 s for all that its result names.
func TestASlowServerHoldsTheAnswerForTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inv := &invocation{listed: &tool.Listed{Tool: &tool.Tool{Server: "s"}}}
		inv.outcome.Result = []byte(`{"content":[{"type":"resource_link","uri":"a:1"},{"type":"resource_link","uri":"a:2"}]}`)
		begin := time.Now()
		taken := taker{silent{}, &tool.TakeIn{Resources: true}, inv}.takeIn(t.Context(), true)
		if took := time.Since(begin); took != 10*time.Second {
			t.Errorf("it took %v", took)
		}
		for _, a := range taken {
			if !errors.Is(a.Err, context.DeadlineExceeded) {
				t.Errorf("%+v", a)
			}
		}
		if len(taken) != 2 {
			t.Errorf("%+v", taken)
		}
	})
}

// TestFilesWithinTexts: URIs of files are found in sentences, and in JSON that is the text of a block.
func TestFilesWithinTexts(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("paths of Unix")
	}
	many := ""
	for i := range 1000 {
		many += fmt.Sprintf("file:///%d ", i)
	}
	for text, want := range map[string][]string{
		"file:///dir/my out.txt":                                 {"file:///dir/my out.txt"},
		"Saved to file:///dir/out.txt.":                          {"file:///dir/out.txt"},
		"file:///a\nand (file:///b), <file:///c>":                {"file:///a", "file:///b", "file:///c"},
		`{"path": "file:///dir/out.txt", "to":["file:///d%20"]}`: {"file:///dir/out.txt", "file:///d%20"},
		`"{\"path\":\"file:///dir/out.txt\"}"`:                   {"file:///dir/out.txt"},
		"a profile:///x, file: no, 'file:///y' and file:///y":    {"file:///y"},
		many: strings.Fields(many)[:maxTaken+1],
	} {
		var got []string
		for _, ref := range referencesIn(fmt.Appendf(nil, `{"content":[{"type":"text","text":%q}]}`, text)) {
			got = append(got, ref.uri)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%.100q: %q, want %q", text, got, want)
		}
	}
}
