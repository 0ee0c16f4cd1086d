package main

import (
	"database/sql"
	"testing"

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
