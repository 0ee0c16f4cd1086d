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
	if err := persist.ReadLines(filepath.Join(dir, "state", "mcp-toolhub", "journal"), func(line json.RawMessage) (bool, error) {
		all.Write(append(line, '\n'))
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	return all.String()
}
