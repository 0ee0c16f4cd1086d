package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
)

// What a client calls itself is no formula in a spreadsheet, and stays one cell.
func TestCSVHoldsNoFormulas(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := csvRows(t.Context(), nil, &b)
	for _, name := range []string{"=1+1", "@x", "a,\"b\"\nc"} {
		if err := w.call(&store.Call{ID: "inv_a", Created: time.Unix(0, 0).UTC(), Client: name}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{",'=1+1,", ",'@x,", ",\"a,\"\"b\"\"\nc\","} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in %s", want, b.String())
		}
	}
}
