//go:build e2e

package cli

import (
	"database/sql"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"

	"github.com/mcp-toolhub/mcp-toolhub/internal/seal"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store/storetest"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
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
	for _, name := range []string{hub.StateKey, hub.EvidenceKey} {
		writeFile(t, filepath.Join(r.state, name), "")
	}
	r.echoed(r.launch())
	if key := readFile(t, filepath.Join(r.state, hub.StateKey)); len(key) != seal.KeySize {
		t.Errorf("the key has %d bytes", len(key))
	}
}

// A record store that a later version has made is not written: calls are answered, and health says why they are in the journal alone.
func TestNewerRecordStoreIsRefused(t *testing.T) {
	t.Parallel()
	r := newStoring(t, nil, "sqlite")
	h := r.launch()
	r.echoed(h)
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(r.state, store.FileName))
	if err == nil {
		_, err = db.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)")
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	h = r.launch()
	r.echoed(h)
	const want = "a later version of mcp-toolhub has made its tables"
	if err := h.waitFor(regexp.MustCompile(want)); err != nil {
		t.Fatal(err)
	}
	if _, text := h.health(t); !strings.Contains(text, want) {
		t.Errorf("health: %s", text)
	}
}

// Calls that a full record store loses are told of in the log, in health and in the metrics. Requests without a valid token are counted, and logged.
func TestLossesAndRefusalsAreTold(t *testing.T) {
	t.Parallel()
	r := newStoring(t, nil, "sqlite")
	writeFile(t, filepath.Join(r.dir, "ann"), "a-long-token-of-ann")
	writeFile(t, r.config, configText(t, map[string]any{"s": child(upstreamtest.Script{})}, map[string]any{
		"persist": map[string]any{"records": map[string]any{"max_bytes": 1 << 20}},
		"policy":  map[string]any{"mode": "accept_all"},
		"hub":     map[string]any{"auth": map[string]any{"tokens": []map[string]any{{"name": "ann", "token": "${file:ann}"}}}}}))
	h := r.launch()
	ann := []string{"Authorization", "Bearer a-long-token-of-ann"}
	if status, _ := scrapeHub(t, h.url+"/metrics", "no-token-of-anybody"); status != http.StatusUnauthorized {
		t.Errorf("status %d", status)
	}
	if err := h.waitFor(regexp.MustCompile(`a request without a valid token is refused.*127\.0\.0\.1`)); err != nil {
		t.Fatal(err)
	}
	w := wireHTTP(t, h.url+"/mcp", rev2026, ann...).open()
	for range 100 {
		w.send(w.call("mcp.s.echo", `{"text": "`+strings.Repeat("many words ", 1000)+`"}`, ""))
	}
	if err := h.waitFor(regexp.MustCompile("the record store is full")); err != nil {
		t.Fatal(err)
	}
	if _, text := h.health(t, ann...); !strings.Contains(text, "the record store is full") {
		t.Errorf("health: %s", text)
	}
	_, metrics := scrapeHub(t, h.url+"/metrics", "a-long-token-of-ann")
	if metrics["toolhub_store_surplus_total"] < 1 || metrics["toolhub_callers_refused_total"] != 1 {
		t.Errorf("metrics: %v", metrics)
	}
}
