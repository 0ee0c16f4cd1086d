package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/seal"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store/storetest"
)

// A graceful stop leaves all records in the store, also those of a hub that stops before it has filled the store for the first time.
func TestStopFillsTheStore(t *testing.T) {
	t.Parallel()
	url := storetest.Database(t)
	r := newStoring(t, nil, url)
	h := r.launch()
	const calls = 20
	for range calls {
		r.echoed(h)
	}
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ended := 0
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM invocations WHERE ended IS NOT NULL").Scan(&ended); err != nil || ended != calls {
		t.Errorf("the store has %d of %d calls, %v", ended, calls, err)
	}
}

// A hub starts in a directory in which a killed one left its key files empty.
func TestEmptyKeysAreMadeAnew(t *testing.T) {
	t.Parallel()
	r := newStoring(t, nil, "sqlite")
	if err := os.Mkdir(r.state, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{stateKey, evidenceKey} {
		writeFile(t, filepath.Join(r.state, name), "")
	}
	r.echoed(r.launch())
	if key := readFile(t, filepath.Join(r.state, stateKey)); len(key) != seal.KeySize {
		t.Errorf("the key has %d bytes", len(key))
	}
}
