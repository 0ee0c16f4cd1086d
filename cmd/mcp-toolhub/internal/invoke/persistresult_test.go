package invoke

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
)

// TestLargeImagesCount: an image counts little, unless it is so large that models refuse it.
func TestLargeImagesCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ length, least, most int }{{4, 4, 100}, {maxImage, imageChars, imageChars + 100}, {maxImage + 4, maxImage + 4, maxImage + 104}} {
		result := `{"content":[{"type":"image","mimeType":"image/png","data":"` + strings.Repeat("A", c.length) + `"}]}`
		if size := shownSize([]byte(result)); size < c.least || size > c.most {
			t.Errorf("an image of %d characters counts for %d, not for %d to %d", c.length, size, c.least, c.most)
		}
	}
}

// TestLongLines: a result is stored, and previewed, that clients over stdio would lose the connection over, though images count
// little otherwise. Over HTTP the same result goes on whole.
func TestLongLines(t *testing.T) {
	t.Parallel()
	image := `{"type":"image","mimeType":"image/png","data":"` + strings.Repeat("A", maxLine/2) + `"}`
	b := newBench(t, "", func(context.Context, *tool.Execution) (tool.Reply, error) {
		return tool.Reply{Result: json.RawMessage(`{"content":[` + image + `,` + image + `]}`)}, nil
	})
	var err error
	if b.opts.Results, err = payload.Open(t.Context(), payload.Config{Dir: t.TempDir()}, nil, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.opts.Results.Close)
	for door, cut := range map[string]bool{"stdio": true, "http": false} {
		c := b.callOf("mcp.s.t", `{"n":1}`)
		c.Actor.Door = door
		got := b.Invoke(t.Context(), c)
		if got.Status != tool.StatusSucceeded || (len(got.Result) < maxLine) != cut || strings.Contains(string(got.Result), "are stored") != cut {
			t.Errorf("%s: %s, %d bytes: %.300s", door, got.Status, len(got.Result), got.Result)
		}
	}
}
