package evidence

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// short has values for which "[erased]" is too long.
const shortCall = `{"object":"call_record","version":1,"invocation_id":"inv_9","tool_id":"t","model_input":{"a":1,"b":22,"c":"","d":3},"steps":[["planned",0]]}`

func some(ids ...tool.InvocationID) func(tool.InvocationID) bool {
	return func(id tool.InvocationID) bool {
		return strings.Contains(" "+strings.Join(texts(ids), " ")+" ", " "+string(id)+" ")
	}
}

func texts(ids []tool.InvocationID) (out []string) {
	for _, id := range ids {
		out = append(out, string(id))
	}
	return out
}

func (j journal) read(name string) string {
	j.t.Helper()
	text, err := os.ReadFile(j.path(name))
	if err != nil {
		j.t.Fatal(err)
	}
	return string(text)
}

// proves checks that a bundle of the journal verifies, with that many erased lines.
func (j journal) proves(erased int) {
	j.t.Helper()
	r, err := Verify(bytes.NewReader(j.bundle(Selection{})))
	if err != nil || len(r.Findings) > 0 || r.Erased != erased {
		j.t.Errorf("%+v %v", r, err)
	}
}

// TestErase checks that what is erased is gone from the journal and its chain, that all else stays where it is, and that the chain verifies, also
// where a value leaves no room, where lines come later, and where a bundle leaves values out.
func TestErase(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	j.add(firstFile, append(calls(1, 3), shortCall)...)
	j.add(secondFile, `{"object":"task_record","version":1,"invocation_id":"inv_2","steps":[["progress",7,{"message":"se\"cret"}]]}`)
	before := j.read(firstFile)
	if n, err := j.Erase(some("inv_2", "inv_9", "inv_none")); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	after := j.read(firstFile)
	if len(after) != len(before) || strings.Count(after, `se\"cret`) != 2 || !strings.Contains(after, `"steps":[["planned",0],["running",2]]`) ||
		!strings.Contains(after, `"model_input":{"a":0,"b":"","c":"","d":0}`) || !strings.HasPrefix(after, call(1)+"\n") {
		t.Errorf("%s", after)
	}
	if text := j.read(secondFile); strings.Contains(text, "cret") || !strings.Contains(text, `"steps":["[erased]"]`) {
		t.Error(text)
	}
	j.proves(3)
	j.add(firstFile, call(4))
	j.proves(3)
	without := j.bundle(Selection{Without: []string{"model_input", "steps"}})
	if r, err := Verify(bytes.NewReader(without)); err != nil || len(r.Findings) > 0 || r.Erased != 6 {
		t.Errorf("%+v %v", r, err)
	}
	again := j.read(firstFile)
	if n, err := j.Erase(some("inv_2", "inv_9")); n != 0 || err != nil || j.read(firstFile) != again {
		t.Error(n, err)
	}
	// who writes another value into a tombstone is found
	text := strings.Replace(again, `"a":0,"b":""`, `"a":7,"b":""`, 1)
	if err := os.WriteFile(j.path(firstFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, _ := Verify(bytes.NewReader(j.bundle(Selection{}))); len(r.Findings) != 1 || r.Findings[0].What != "altered" {
		t.Errorf("%+v", r.Findings)
	}
}

// TestEraseIsCarriedOut checks that whoever comes next ends what a kill has left half done, wherever that was.
func TestEraseIsCarriedOut(t *testing.T) {
	t.Parallel()
	for _, written := range []int{0, 1, 40, 120, len(call(1))} {
		j := newJournal(t)
		j.add(firstFile, append(calls(1, 3), shortCall)...)
		plan, n, err := planOf(j.path(firstFile), some("inv_1", "inv_3"))
		if n != 2 || err != nil {
			t.Fatal(n, err)
		}
		edit := plan[2:] // the first line begins at 0
		before := []byte(j.read(firstFile))
		copy(before, edit[:written])
		for name, text := range map[string][]byte{firstFile: before, firstFile + erasingSuffix: plan} {
			if err := os.WriteFile(j.path(name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := NewKeeper(j.dir, j.keyFile).Extend(); err != nil {
			t.Fatal(err)
		}
		if text := j.read(firstFile); len(text) != len(before) || strings.Count(text, `se\"cret`) != 1 {
			t.Errorf("after %d bytes: %s", written, text)
		}
		if _, err := os.Stat(j.path(firstFile + erasingSuffix)); !os.IsNotExist(err) {
			t.Error(err)
		}
		j.proves(2)
	}
}

// TestEraseWithoutChains checks lines that are in no chain, as of a file that was cut.
func TestEraseWithoutChains(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	if n, err := j.Erase(some("inv_1")); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	j.add(firstFile, calls(1, 3)...)
	text := j.read(firstFile)
	if err := os.WriteFile(j.path(firstFile), []byte(text[len(call(1))-20:]), 0o600); err != nil { // the chain has more
		t.Fatal(err)
	}
	if n, err := j.Erase(some("inv_3")); n != 1 || err == nil || strings.Count(j.read(firstFile), `se\"cret`) != 1 {
		t.Errorf("%d %v %s", n, err, j.read(firstFile))
	}
}
