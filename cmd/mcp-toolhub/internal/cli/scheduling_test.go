package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// readJournal returns the lines that the hub has written.
func readJournal(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	if err := persist.NewLines(filepath.Join(dir, "state", "mcp-toolhub", "journal"), "", make(map[string]int64), func(line json.RawMessage) bool {
		all.Write(append(line, '\n'))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return all.String()
}
