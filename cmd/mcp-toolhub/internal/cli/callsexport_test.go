package cli

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
)

// What a client calls itself is no formula in a spreadsheet, and stays one cell.
func TestCSVHoldsNoFormulas(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for _, name := range []string{"=1+1", "@x", "a,\"b\"\nc"} {
		_ = w.Write(csvRow(&store.Call{ID: "inv_a", Created: time.Unix(0, 0).UTC(), Client: name}))
	}
	w.Flush()
	for _, want := range []string{",'=1+1,", ",'@x,", ",\"a,\"\"b\"\"\nc\","} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in %s", want, b.String())
		}
	}
}
