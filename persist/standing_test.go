package persist

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// surface is a surface with a record of some size.
type surface tool.SurfaceID

func (s surface) StandingKey() string { return string(s) }

func (s surface) StandingRecords() []tool.Record {
	return []tool.Record{tool.SurfaceRecord{Head: tool.HeadOf(tool.ObjectSurface), SurfaceID: tool.SurfaceID(s), Scope: strings.Repeat("x", 500)}}
}

// TestFilesHoldWhatTheyName: each file has the record of each surface that its calls name, once, before them, whatever files are
// removed. A reader of all files sees each record once.
func TestFilesHoldWhatTheyName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := Open(JournalConfig{Dir: dir, MaxBytes: 8 << 10, MaxFiles: 3}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	first, end := OrdinaryCall()
	first.Name(surface("srf_2"))
	FinishCall(first)
	if err := j.End(t.Context(), first, end); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		c, end := OrdinaryCall()
		c.Name(surface("srf_1"))
		if i%5 == 0 { // it begins in one file, and may end in the next one
			if err := j.Note(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		FinishCall(c)
		if err := j.End(t.Context(), c, end); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := Files(dir)
	if err != nil || len(names) != 3 {
		t.Fatalf("files %q, %v", names, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), `"object":"tool_surface"`); n != 1 || !strings.HasPrefix(string(text), standingPrefix) || strings.Contains(string(text), "srf_2") {
			t.Errorf("%s has %d surfaces, and begins with %.100s", name, n, text)
		}
	}
	records := 0
	err = Read(dir, func(object json.RawMessage) bool {
		if strings.Contains(string(object), `"object":"tool_surface"`) {
			records++
		}
		return true
	})
	if err != nil || records != 1 {
		t.Errorf("%d records of one surface, %v", records, err)
	}
}

// TestObjectsOfEarlierHubs: a journal in which the objects of a tool stand themselves is read as it is.
func TestObjectsOfEarlierHubs(t *testing.T) {
	t.Parallel()
	old := []string{`{"object":"tool_namespace","schema_version":"0.2.0","namespace_id":"mcp.s"}`,
		`{"object":"tool_declaration","schema_version":"0.2.0","tool_id":"mcp.s.echo","aliases":[]}`}
	lines := []json.RawMessage{json.RawMessage(`{"object":"standing_records","version":1,"key":"namespace mcp.s","records":[` + old[0] + `]}`),
		json.RawMessage(`{"object":"standing_records","version":1,"key":"k","records":[` + old[1] + `]}`)}
	var got []string
	err := Derive(append(lines, lines...), func(object json.RawMessage) bool {
		got = append(got, string(object))
		return true
	})
	if err != nil || !slices.Equal(got, old) {
		t.Errorf("%q, %v", got, err)
	}
}
