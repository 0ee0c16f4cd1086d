//go:build e2e

package cli

import (
	"encoding/json"
	"testing"
)

// listOf are the elements of an array, raw.
func listOf(t testing.TB, array string) (all []string) {
	t.Helper()
	var raw []json.RawMessage
	mustDecode(t, array, &raw)
	for _, one := range raw {
		all = append(all, string(one))
	}
	return all
}
