package evidence

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const (
	firstFile  = "journal-20261122T100000.000Z-000001.jsonl"
	secondFile = "journal-20261122T100000.000Z-000002.jsonl"
)

// journal is one with a Keeper.
type journal struct {
	*Keeper
	t *testing.T
}

func newJournal(t *testing.T) journal {
	dir := t.TempDir()
	return journal{NewKeeper(filepath.Join(dir, "journal"), filepath.Join(dir, "key")), t}
}

func (j journal) path(name string) string { return filepath.Join(j.dir, name) }

// add writes lines to a file, and extends the chains.
func (j journal) add(name string, lines ...string) {
	j.t.Helper()
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		j.t.Fatal(err)
	}
	f, err := os.OpenFile(j.path(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	}
	if err = errors.Join(err, f.Close(), j.Extend()); err != nil {
		j.t.Fatal(err)
	}
}

func call(n int) string {
	return fmt.Sprintf(`{"object":"call_record","version":1,"invocation_id":"inv_%d","model_input":{"a": %d,"note":"se\"cret"},"steps":[["planned",0],["running",%d]],"result":{"content":[]}}`, n, n, n)
}

func calls(from, to int) (lines []string) {
	for n := from; n <= to; n++ {
		lines = append(lines, call(n))
	}
	return lines
}

func (j journal) bundle(sel Selection) []byte {
	j.t.Helper()
	if sel.Line == nil {
		sel.Line = func([]byte) bool { return true }
	}
	var b bytes.Buffer
	if err := j.Write(&b, sel); err != nil {
		j.t.Fatal(err)
	}
	return b.Bytes()
}

// member is one of a bundle.
type member struct{ name, text string }

func unpack(t *testing.T, bundle []byte) (all []member) {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(bundle))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, member{h.Name, string(text)})
	}
}

func pack(all []member) []byte {
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	_, _ = zipped.Write(tarOf(all))
	_ = zipped.Close()
	return b.Bytes()
}

func tarOf(all []member) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range all {
		_ = w.WriteHeader(&tar.Header{Name: m.name, Mode: 0o600, Size: int64(len(m.text))})
		_, _ = io.WriteString(w, m.text)
	}
	_ = w.Close()
	return b.Bytes()
}

// said verifies a bundle, and returns what was found: "altered 2", or "removed" where no line is known. Of a removed line it says which record
// that was.
func said(t *testing.T, bundle []byte) (found []string, r *Report) {
	t.Helper()
	r, err := Verify(bytes.NewReader(bundle))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		text := f.What
		if f.Line > 0 {
			text = fmt.Sprintf("%s %d", f.What, f.Line)
		}
		if f.What == "removed" && f.Record != "" {
			text += " " + f.Detail + " " + f.Record
		}
		found = append(found, text)
	}
	return found, r
}

// gone is what said says of calls that were removed.
func gone(from, to int) (all []string) {
	for n := from; n <= to; n++ {
		all = append(all, fmt.Sprintf("removed %d call_record inv_%d", n, n))
	}
	return all
}

func TestVerifyNamesWhatWasChanged(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	j.add(firstFile, calls(1, 4)...)
	j.add(firstFile, calls(5, 8)...)
	bundle := j.bundle(Selection{})
	records := journalDir + firstFile
	lines := func(change func(lines []string) []string) func(m *member) {
		return func(m *member) {
			if m.name == records {
				m.text = strings.Join(change(strings.SplitAfter(strings.TrimSuffix(m.text, "\n"), "\n")), "")
			}
		}
	}
	in := func(name, from, to string) func(m *member) {
		return func(m *member) {
			if m.name == name {
				if !strings.Contains(m.text, from) {
					t.Errorf("%s has no %q", name, from)
				}
				m.text = strings.Replace(m.text, from, to, 1)
			}
		}
	}
	dropped := func(name string) func(m *member) {
		return func(m *member) {
			if m.name == name {
				m.name, m.text = "", ""
			}
		}
	}
	for _, test := range []struct {
		name   string
		change func(m *member)
		want   []string
	}{
		{"nothing", func(*member) {}, nil},
		{"a value", in(records, `"a": 3`, `"a": 4`), []string{"altered 3"}},
		{"a name", in(records, `"note":"se\"cret"},"steps":[["planned",0],["running",3]`, `"mote":"se\"cret"},"steps":[["planned",0],["running",3]`), []string{"altered 3"}},
		{"a kind", in(records, `"steps":[["planned",0],["running",3]]`, `"steps":{"":["planned",0],"":["running",3]}`), []string{"altered 3"}},
		{"a step goes", in(records, `["planned",0],["running",3]`, `["running",3]`), []string{"altered 3"}},
		{"text after the object", in(records, `"inv_3","model_input"`, `"inv_3"}{"model_input"`), append([]string{"added"}, gone(3, 3)...)},
		{"a line goes", lines(func(l []string) []string { return slices.Delete(l, 2, 3) }), gone(3, 3)},
		{"the last line goes", lines(func(l []string) []string { return l[:7] }), gone(8, 8)},
		{"all lines go", dropped(records), gone(1, 8)},
		{"two lines change places", lines(func(l []string) []string { l[1], l[2] = l[2], l[1]; return l }), []string{"moved 2"}},
		{"a line moves", lines(func(l []string) []string { return append(slices.Delete(slices.Clone(l), 0, 1), "\n"+l[0]) }), []string{"moved 1"}},
		{"a line comes", lines(func(l []string) []string { return slices.Insert(l, 2, call(9)+"\n") }), []string{"added"}},
		{"a line comes twice", lines(func(l []string) []string { return slices.Insert(l, 2, l[1]) }), []string{"added"}},
		{"one goes, one changes", lines(func(l []string) []string {
			l[6] = call(99) + "\n"
			return slices.Delete(l, 2, 3)
		}), append([]string{"added"}, append(gone(3, 3), gone(7, 7)...)...)},
		{"a name in the chain", in(records+Suffix, `inv_3"`, `inv_4"`), []string{"chain 1", "added", "removed 3 call_record inv_4"}},
		{"a digest", in(records+Suffix, `{"digest":"`, `{"digest":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}`+"\n"+`{"digest":"`),
			nil},
		{"a signature", in(records+Suffix, `"lines":4`, `"lines":5`), []string{"head 5"}},
		{"the statement", in(statementName, `"lines":8`, `"lines":7`), []string{"statement"}},
		{"no statement", dropped(statementName), []string{"statement"}},
		{"no file", func(m *member) { dropped(records)(m); dropped(records + Suffix)(m) }, append([]string{"removed"}, gone(1, 8)...)},
	} {
		all := unpack(t, bundle)
		for i := range all {
			test.change(&all[i])
		}
		found, _ := said(t, pack(slices.DeleteFunc(all, func(m member) bool { return m.name == "" })))
		if test.name == "a digest" {
			if len(found) == 0 || !slices.Contains(found, "chain 1") {
				t.Errorf("%s: found %q", test.name, found)
			}
		} else if !slices.Equal(found, test.want) {
			t.Errorf("%s: found %q, want %q", test.name, found, test.want)
		}
	}
}

// A line and its proof that go together are missed: the statement says that they were there.
func TestProofCannotBeTakenOut(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	j.add(firstFile, calls(1, 3)...)
	all := unpack(t, j.bundle(Selection{}))
	for i := range all {
		lines := strings.SplitAfter(all[i].text, "\n")
		switch all[i].name {
		case journalDir + firstFile + Suffix:
			var e entry
			if err := json.Unmarshal([]byte(lines[1]), &e); err != nil {
				t.Fatal(err)
			}
			closed, _ := e.link().MarshalText() // as a bundle has it that leaves the line out
			lines[1] = `{"digest":"` + string(closed) + `"}` + "\n"
		case journalDir + firstFile:
			lines = slices.Delete(lines, 1, 2)
		}
		all[i].text = strings.Join(lines, "")
	}
	found, _ := said(t, pack(all))
	if !slices.Equal(found, gone(2, 2)) {
		t.Errorf("found %q", found)
	}
}

func TestBundleOfSomeLines(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	j.add(firstFile, calls(1, 100)...)
	j.add(secondFile, calls(101, 102)...)
	bundle := j.bundle(Selection{Line: func(line []byte) bool { return bytes.Contains(line, []byte(`"inv_42"`)) }})
	found, r := said(t, bundle)
	if len(found) > 0 || r.Records != 1 || r.Lines != 102 {
		t.Errorf("found %q in %+v", found, r)
	}
	for _, m := range unpack(t, bundle) {
		if strings.Contains(m.text, `inv_41`) || strings.HasSuffix(m.name, firstFile+Suffix) && strings.Count(m.text, `"salt"`) != 1 {
			t.Errorf("%s tells of other calls", m.name)
		}
	}
}

// What was left out verifies as left out; nothing else can stand in its place, and nothing else can be left out afterwards.
func TestErasedValues(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	j.add(firstFile, append(calls(1, 3), "no JSON", `{"object":"call_record","":{"":[1]},"model_input":{},"model_input":{"x":[{}]}}`)...)
	bundle := j.bundle(Selection{Without: []string{"model_input", "steps"}})
	found, r := said(t, bundle)
	if len(found) > 0 || r.Records != 5 || r.Erased != 4 {
		t.Errorf("found %q in %+v", found, r)
	}
	all := unpack(t, bundle)
	at := slices.IndexFunc(all, func(m member) bool { return m.name == journalDir+firstFile })
	text := all[at].text
	if strings.Contains(text, "cret") || strings.Contains(text, "running") {
		t.Errorf("erased values are there: %s", text)
	}
	for line := range strings.Lines(text) {
		if !json.Valid([]byte(line)) && line != "no JSON\n" {
			t.Errorf("%s is no JSON", line)
		}
	}
	whole := all[at].text
	all[at].text = strings.Join(slices.Delete(strings.SplitAfter(whole, "\n"), 1, 2), "")
	if found, _ := said(t, pack(all)); !slices.Equal(found, gone(2, 2)) {
		t.Errorf("without a line that lacks values: found %q", found)
	}
	all[at].text = whole
	for from, to := range map[string]string{`"note":"[erased]"`: `"note":"x"`, `"inv_1"`: `"[erased]"`, `"note":`: `"mote":`} {
		want := []string{"altered 1"}
		if from == `"inv_1"` { // its name is another one
			want = append([]string{"added"}, gone(1, 1)...)
		}
		all[at].text = strings.Replace(text, from, to, 1)
		if found, _ := said(t, pack(all)); !slices.Equal(found, want) {
			t.Errorf("%s becomes %s: found %q", from, to, found)
		}
	}
}

// An Extend that was cut off is done again by the next one; several keepers make one chain.
func TestExtendGoesOn(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	j.add(firstFile, calls(1, 3)...)
	chain, err := os.OpenFile(j.path(firstFile+Suffix), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = chain.WriteString(`{"digest":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","salt":"AAAA"}` + "\n" + `{"dig`)
	_ = chain.Close()
	other := journal{NewKeeper(j.dir, j.keyFile), t}
	other.add(firstFile, calls(4, 5)...)
	j.add(firstFile, calls(6, 7)...)
	other.add(firstFile, call(8)+"\n"+`{"half`) // with a line break that follows
	if found, r := said(t, j.bundle(Selection{})); len(found) > 0 || r.Records != 9 {
		t.Errorf("found %q in %+v", found, r)
	}
	before := size(j.path(firstFile + Suffix))
	if err := errors.Join(j.Extend(), other.Extend(), j.Extend()); err != nil || size(j.path(firstFile+Suffix)) != before {
		t.Errorf("the chain grew without lines: %v", err)
	}
}

// What is done to the journal itself is found in a bundle, and later lines do not cover it up.
func TestJournalThatWasChanged(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(lines []string) []string
		want   []string
		fails  bool // Extend says so
	}{
		"altered":          {func(l []string) []string { l[1] = strings.Replace(l[1], "inv_2", "inv_9", 1); return l }, append([]string{"added"}, gone(2, 2)...), false},
		"the last is gone": {func(l []string) []string { return l[:2] }, gone(3, 3), true},
	} {
		j := newJournal(t)
		j.add(firstFile, calls(1, 3)...)
		text, err := os.ReadFile(j.path(firstFile))
		if err != nil {
			t.Fatal(err)
		}
		text = []byte(strings.Join(test.change(strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")), ""))
		if !test.fails {
			text = append(append(text, '\n'), call(4)+"\n"...)
		}
		if err := os.WriteFile(j.path(firstFile), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := NewKeeper(j.dir, j.keyFile).Extend(); (err != nil) != test.fails {
			t.Errorf("%s: Extend says %v", name, err)
		}
		if found, _ := said(t, j.bundle(Selection{})); !slices.Equal(found, test.want) {
			t.Errorf("%s: found %q, want %q", name, found, test.want)
		}
	}
}

// A file whose chain was removed, cut or made anew is not signed again: Extend says so each time, goes on with other files, and verify names it. Once the
// chain is back, all is as before.
func TestChainThatWasTakenBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(path string) error
		want   []string
	}{
		"removed": {os.Remove, []string{"removed"}},
		"cut to the first head": {func(path string) error {
			text, err := os.ReadFile(path)
			end := bytes.Index(text, []byte(`{"head":`))
			return errors.Join(err, os.WriteFile(path, text[:end+bytes.IndexByte(text[end:], '\n')+1], 0o600))
		}, []string{"altered 1", "removed"}},
		"cut to nothing": {func(path string) error { return os.Truncate(path, 0) }, []string{"removed"}},
		"signed with another key": {func(path string) error {
			dir := filepath.Dir(path)
			err := os.Remove(path)
			return errors.Join(err, NewKeeper(dir, filepath.Join(dir, "other")).Extend())
		}, []string{"head 1", "head 1", "statement"}},
	} {
		j := newJournal(t)
		j.add(firstFile, calls(1, 2)...)
		j.add(firstFile, calls(3, 4)...)
		path := j.path(firstFile + Suffix)
		chain, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		forged := strings.Replace(j.read(firstFile), `"a": 1`, `"a": 7`, 1)
		if err := errors.Join(os.WriteFile(j.path(firstFile), []byte(forged), 0o600), test.change(path)); err != nil {
			t.Fatal(err)
		}
		before := size(path)
		for _, keeper := range []*Keeper{j.Keeper, NewKeeper(j.dir, j.keyFile)} { // one that runs, and the next start
			for range 2 {
				if err := keeper.Extend(); !errors.Is(err, ErrDamaged) {
					t.Errorf("%s: Extend says %v", name, err)
				}
			}
		}
		if size(path) != before {
			t.Errorf("%s: the chain has %d bytes, %d before", name, size(path), before)
		}
		if err := os.WriteFile(j.path(secondFile), []byte(call(5)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := j.Extend(); !errors.Is(err, ErrDamaged) || size(j.path(secondFile+Suffix)) == 0 {
			t.Errorf("%s: the other file has %d bytes of a chain, %v", name, size(j.path(secondFile+Suffix)), err)
		}
		if found, _ := said(t, j.bundle(Selection{})); !slices.Equal(found, test.want) {
			t.Errorf("%s: found %q, want %q", name, found, test.want)
		}
		if err := os.WriteFile(path, chain, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := j.Extend(); err != nil {
			t.Errorf("%s: once it is back: %v", name, err)
		}
		if found, _ := said(t, j.bundle(Selection{})); !slices.Equal(found, []string{"altered 1"}) {
			t.Errorf("%s: once it is back found %q", name, found)
		}
	}
}

// Nobody but the holder of the key writes what is kept with it.
func TestKeptHeadsAreSigned(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	j.add(firstFile, call(1))
	text, err := os.ReadFile(j.keyFile + HeadsSuffix)
	if err != nil {
		t.Fatal(err)
	}
	for _, changed := range []string{"", "{}", strings.Replace(string(text), `"lines":1`, `"lines":0`, 1), string(text[:len(text)/2])} {
		if err := os.WriteFile(j.keyFile+HeadsSuffix, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := NewKeeper(j.dir, j.keyFile).Extend(); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v", changed, err)
		}
	}
}

// Files that were removed in time are no fault, and their chains go with them.
func TestRemovedFilesAreNoFault(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	j.add(firstFile, calls(1, 3)...)
	j.add(secondFile, calls(4, 5)...)
	if err := os.Remove(j.path(firstFile)); err != nil {
		t.Fatal(err)
	}
	j.add(secondFile, call(7))
	if found, r := said(t, j.bundle(Selection{})); len(found) > 0 || size(j.path(firstFile+Suffix)) > 0 {
		t.Errorf("found %q in %+v", found, r)
	}
}

// Who signs with another key is another one.
func TestAnotherKey(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	j.add(firstFile, calls(1, 2)...)
	forged := journal{NewKeeper(j.dir, j.keyFile+"2"), t}
	if found, _ := said(t, forged.bundle(Selection{})); !slices.Equal(found, []string{"statement"}) {
		t.Errorf("found %q", found)
	}
}

// Bundles of strangers take little memory, whatever they hold.
func TestBombs(t *testing.T) {
	for name, text := range map[string]string{
		journalDir + firstFile + Suffix: strings.Repeat("\n", 8<<20),
		statementName:                   strings.Repeat("[", 8<<20),
	} {
		bomb := pack([]member{{name, text}})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Verify(bytes.NewReader(bomb))
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 200<<20 || len(bomb) > 1<<17 {
			t.Errorf("%s of %d bytes takes %d MB: %v", name, len(bomb), took>>20, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	for _, text := range []string{"", "{}", `{"head":{"file":"` + firstFile + `","key":"AA=="},"sig":""}`, call(1), "\n", `{"digest":"x","leaves":"AAE="}`} {
		f.Add(text, text, text)
	}
	f.Fuzz(func(t *testing.T, chain, lines, stated string) {
		name := journalDir + firstFile
		r, err := verify(bytes.NewReader(tarOf([]member{{name + Suffix, chain}, {name, lines}, {statementName, stated}})))
		if err == nil && len(r.Findings) == 0 {
			t.Error("a bundle that nobody has signed is as it was signed")
		}
		_, _ = verify(strings.NewReader(chain))
	})
}

func FuzzErase(f *testing.F) {
	f.Add(call(1), "model_input")
	f.Add(`{"":{"":1},"a":[],"a":[[1]]}`, "a")
	f.Fuzz(func(t *testing.T, line, name string) {
		salt := make([]byte, saltSize)
		e := entry{Salt: salt}
		whole, _ := e.digestOf(leavesOf(nil, []byte(line)))
		erased := e.erase([]byte(line), false, func(under, key string, _ []byte) bool { return cmp.Or(under, key) == name })
		if d, ok := e.digestOf(leavesOf(nil, erased)); !ok || d != whole {
			t.Errorf("%s becomes %s, which is another line", line, erased)
		}
	})
}

func BenchmarkDigest(b *testing.B) {
	line, e := []byte(call(1)), entry{Salt: make([]byte, saltSize)}
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		e.digestOf(leavesOf(nil, line))
	}
}

func BenchmarkEntries(b *testing.B) {
	lines := strings.Join(calls(1, 1000), "\n") + "\n"
	b.SetBytes(int64(len(lines)))
	b.ReportAllocs()
	for b.Loop() {
		if err := appendEntries(io.Discard, strings.NewReader(lines), &head{}); err != nil {
			b.Fatal(err)
		}
	}
}
