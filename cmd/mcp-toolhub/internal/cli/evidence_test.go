//go:build e2e

package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/persist/evidence"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// evidence exports all calls and verifies the bundle, both through the program, and returns the report.
func (s *sharing) evidence() (r evidence.Report) {
	s.t.Helper()
	bundle := filepath.Join(s.dir, "bundle.tar.gz")
	for _, args := range [][]string{
		{"calls", "export", "--format", "evidence", "--output", bundle, "--config", s.config, "--state-dir", filepath.Join(s.dir, "state")},
		{"evidence", "verify", bundle, "-o", "json"},
	} {
		cmd := exec.Command("mcp-toolhub", args...)
		cmd.Dir, cmd.Env, cmd.Stderr = s.dir, scratchEnv(s.dir), s.t.Output()
		out, err := cmd.Output()
		if err != nil {
			s.t.Fatalf("%q: %v: %s", args, err, out)
		}
		if bytes.HasPrefix(out, []byte("{")) {
			mustDecode(s.t, string(out), &r)
		}
	}
	return r
}

// The lines of a killed hub are taken into the chain by whoever comes next, those that end its calls too.
func TestEvidenceOfAKilledHub(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &sharing{t, dir, filepath.Join(dir, "hub.json")}
	writeFile(t, s.config, configText(t, map[string]any{"s": child(upstreamtest.Script{})}, map[string]any{"policy": map[string]any{"mode": "accept_all"}}))
	killed := s.launch()
	w := wireHTTP(t, killed.url+"/mcp", rev2026).open()
	for range 5 {
		w.send(w.call("mcp.s.echo", `{}`, ""))
	}
	s.call(killed, "mcp.s.hang")
	eventually(t, "six calls are in the journal", func() bool { return len(s.results()) == 6 })
	_ = killed.cmd.Process.Kill()
	<-killed.read
	before := s.evidence()
	if before.Records < 6 || int64(before.Records) != before.Lines || len(before.Findings) > 0 {
		t.Errorf("after the kill: %+v", before)
	}
	s.launch()
	eventually(t, "the call of the killed hub has ended", func() bool {
		open := 0
		for _, results := range s.results() {
			if len(results) == 0 {
				open++
			}
		}
		return open == 0
	})
	if after := s.evidence(); after.Records <= before.Records || int64(after.Records) != after.Lines || len(after.Findings) > 0 {
		t.Errorf("after the next start: %+v", after)
	}
}

// A journal that was changed and that lost its chain is not signed as it is by the next hub. Log, health and verify say so.
func TestForgedJournalIsNotSigned(t *testing.T) {
	t.Parallel()
	r := newStoring(t, nil, "sqlite")
	h := r.launch()
	r.echoed(h)
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	file := r.journal()[0]
	writeFile(t, file, strings.ReplaceAll(readFile(t, file), "hello", "hullo"))
	if err := os.Remove(file + evidence.Suffix); err != nil {
		t.Fatal(err)
	}
	h = r.launch()
	if err := h.waitFor(regexp.MustCompile("records are in no chain of evidence.*the file or its chain is missing")); err != nil {
		t.Fatal(err)
	}
	if _, text := h.health(t); !strings.Contains(text, "the file or its chain is missing") {
		t.Errorf("health: %s", text)
	}
	bundle := filepath.Join(r.dir, "bundle.tar.gz")
	r.calls("export", "--format", "evidence", "--output", bundle)
	verify := exec.Command(h.cmd.Path, "evidence", "verify", bundle)
	if out, err := verify.Output(); err == nil || !strings.Contains(string(out), "or its chain") {
		t.Errorf("verify: %v, %s", err, out)
	}
	if _, err := os.Stat(file + evidence.Suffix); err == nil {
		t.Error("the file has a chain again")
	}
}
