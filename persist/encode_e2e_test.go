//go:build e2e

package persist

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// compacted is lines without insignificant white space.
func compacted(t *testing.T, lines []byte) []byte {
	t.Helper()
	first, text, _ := bytes.Cut(lines, []byte("\n"))
	out := bytes.NewBuffer(append(bytes.Clone(first), '\n'))
	if len(text) > 0 {
		if err := json.Compact(out, text); err != nil {
			t.Fatalf("%q: %v", lines, err)
		}
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// otherRecord is a kind of record of a type that the journal does not have.
type otherRecord struct {
	tool.Head
	Text string `json:"text"`
}

func (otherRecord) RecordObject() tool.Object { return "other" }

// TestEncodingIsThatOfEncodingJSON fills records of every kind at random, by reflection, so that it also covers fields
// that are added later.
func TestEncodingIsThatOfEncodingJSON(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, kind := range []tool.Record{tool.SurfaceRecord{}, tool.DeferredRef{}, tool.Event{}, tool.PermissionDecisionRecord{},
		tool.InputMutationRecord{}, tool.HookRecord{}, tool.ProgressRecord{}, tool.ResultPersistenceRecord{}, tool.Result{},
		tool.Invocation{}, otherRecord{}} {
		refused := 0
		for round := range 2000 {
			value := reflect.New(reflect.TypeOf(kind))
			for i := range value.Elem().NumField() {
				if round > 0 { // the first one has no field set
					fill(random, value.Elem().Field(i))
				}
			}
			want, wantErr := standard(value.Interface())
			for _, r := range []tool.Record{value.Interface().(tool.Record), value.Elem().Interface().(tool.Record)} {
				got, err := appendLine([]byte("before\n"), r)
				if (err != nil) != (wantErr != nil) {
					t.Fatalf("%T %+v\nerror %v, encoding/json has %v", r, r, err, wantErr)
				}
				if err != nil {
					want = ""
				}
				if string(compacted(t, got)) != "before\n"+want || bytes.Count(got, []byte("\n")) != strings.Count("\n"+want, "\n") {
					t.Fatalf("%T\ngot  %q\nwant %q", r, got, want)
				}
			}
			if wantErr != nil {
				refused++
			}
		}
		if refused > 1000 {
			t.Errorf("%T: %d of 2000 are refused: too few are compared", kind, refused)
		}
	}
}
