//go:build e2e

package code

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

func TestSearchProgressAndCancellation(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 1700 {
		files[fmt.Sprintf("root/%d/%04d", i%7, i)] = "needle\n"
	}
	p := newProject(t, files)
	var seen []float64
	_, f := p.callCtx(t, t.Context(), search, object{"query": "none"}, func(pr tool.Progress) {
		var params struct {
			Progress float64
			Message  string
		}
		if err := json.Unmarshal(pr.Params, &params); err != nil || params.Message == "" {
			t.Errorf("%s: %v", pr.Params, err)
		}
		seen = append(seen, params.Progress)
	})
	if f != nil || !slices.Equal(seen, []float64{500, 1000, 1500}) {
		t.Errorf("progress %v, %v", seen, f)
	}
	ctx, cancel := context.WithCancel(t.Context())
	reports := 0
	_, f = p.callCtx(t, ctx, search, object{"query": "none"}, func(tool.Progress) { reports++; cancel() })
	if f == nil || f.Class != tool.ClassCanceled || reports != 1 {
		t.Errorf("canceled in the middle: %v after %d reports", f, reports)
	}
	late, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	if _, f = p.callCtx(t, late, search, object{"query": "none"}, nil); f == nil || f.Class != tool.ClassTimeout {
		t.Errorf("too late: %v", f)
	}
}
