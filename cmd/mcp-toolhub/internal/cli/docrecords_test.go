package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// docs/records.md has one row for each kind of record, in the order of the table of kinds.
func TestRecordsPageHasAllKinds(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "records.md"))
	if err != nil {
		t.Fatal(err)
	}
	objects, _, _ := strings.Cut(string(page), "## The call record")
	var rows, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:tool|deferred)_\\w+)` \\|").FindAllStringSubmatch(objects, -1) {
		rows = append(rows, row[1])
	}
	for _, kind := range []tool.Object{tool.ObjectSurface, tool.ObjectPolicy, tool.ObjectDeferredRef, tool.ObjectEvent, tool.ObjectPermissionDecision,
		tool.ObjectInputMutation, tool.ObjectHook, tool.ObjectProgress, tool.ObjectResultPersistence, tool.ObjectResult,
		tool.ObjectInvocation, tool.ObjectTaskResult} {
		want = append(want, string(kind))
	}
	if !slices.Equal(rows, want) {
		t.Errorf("rows %q, kinds %q", rows, want)
	}
}
