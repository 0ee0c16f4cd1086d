package code

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
)

func replace(old, new string) []object { return []object{{"old": old, "new": new}} }

func TestEditFile(t *testing.T) {
	t.Parallel()
	const text = "one\ntwo\nthree\ntwo and a half\n"
	checkEdits(t, map[string]edited{
		"one place":            {text, "one\ntwo\n3\ntwo and a half\n", object{"edits": replace("three", "3")}, 1},
		"across lines":         {text, "one\n2\n3\ntwo and a half\n", object{"edits": replace("two\nthree", "2\n3")}, 1},
		"nothing in its place": {text, "one\ntwo\ntwo and a half\n", object{"edits": replace("three\n", "")}, 1},
		"all":                  {text, "one\n2\nthree\n2 and a half\n", object{"edits": []object{{"old": "two", "new": "2", "replace_all": true}}}, 2},
		"all, of one":          {text, "1\ntwo\nthree\ntwo and a half\n", object{"edits": []object{{"old": "one", "new": "1", "replace_all": true}}}, 1},
		"several, unordered":   {text, "1\ntwo\n3\ntwo and a half\n", object{"edits": append(replace("three", "3"), replace("one", "1")...)}, 2},
		"of the text as it is": {"a b", "b c", object{"edits": append(replace("a", "b"), replace("b", "c")...)}, 2},
		"side by side":         {"ab", "xy", object{"edits": append(replace("a", "x"), replace("b", "y")...)}, 2},
		"the whole file":       {"ab", "x", object{"edits": replace("ab", "x")}, 1},
		"empty afterwards":     {"ab", "", object{"edits": replace("ab", "")}, 1},
		"an empty file":        {"", "x\n", object{"edits": replace("", "x\n")}, 1},
		"no last ending":       {"a\nb", "a\nc", object{"edits": replace("b", "c")}, 1},
		"an ending at last":    {"a\nb", "a\nb\n", object{"edits": replace("b", "b\n")}, 1},
		"CRLF":                 {"a\r\nb\r\nc", "a\r\nx\r\ny\r\nc", object{"edits": replace("b", "x\ny")}, 1},
		"CRLF across lines":    {"a\r\nb\r\nc\r\n", "z\r\nc\r\n", object{"edits": replace("a\nb", "z")}, 1},
		"CRLF, as it is":       {"a\r\nb\r\nc\r\n", "z\r\ny\r\nc\r\n", object{"edits": replace("a\r\nb\r\n", "z\r\ny\r\n")}, 1},
		"mixed is exact":       {"a\r\nb\nc\n", "a\r\nx\ny\nc\n", object{"edits": replace("b\nc", "x\ny\nc")}, 1},
		"a mark":               {"\xef\xbb\xbfa\n", "\xef\xbb\xbfb\n", object{"edits": replace("a", "b")}, 1},
		"a mark and CRLF":      {"\xef\xbb\xbfa\r\nb\r\n", "\xef\xbb\xbfa\r\nc\r\n", object{"edits": replace("b\n", "c\n")}, 1},
		"dollars are text":     {"a", "$1\\1", object{"edits": replace("a", "$1\\1")}, 1},
		"half of an accent":    {"e\u0301", "e\u0300", object{"edits": replace("\u0301", "\u0300")}, 1},
	})
}

func TestPatchFile(t *testing.T) {
	t.Parallel()
	checkEdits(t, map[string]edited{
		"a diff":                       {"a\nb\nc\n", "a\nx\nc\n", object{"unified_diff": "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"}, 0},
		"without last ending":          {"a\nb\nc\n", "a\nx\nc\n", object{"unified_diff": "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c"}, 0},
		"blank lines after":            {"a\nb\nc\n", "a\nx\nc\n", object{"unified_diff": "--- f\n+++ f\n@@ -2 +2 @@\n-b\n+x\n\n\n"}, 0},
		"no header":                    {"a\nb\nc\n", "a\nx\nc\n", object{"unified_diff": "@@ -2,1 +2,1 @@ func x\n-b\n+x\n"}, 0},
		"of git":                       {"a\nb\nc\n", "a\nx\nc\n", object{"unified_diff": "diff --git a/f b/f\nindex 12..34 100644\n--- a/f\n+++ b/f\n@@ -2 +2 @@\n-b\n+x\n"}, 0},
		"with times":                   {"a\nb\n", "a\nx\n", object{"unified_diff": "--- f\t2026-01-01 00:00:00\n+++ f\t2026-01-01 00:00:01\n@@ -2 +2 @@\n-b\n+x\n"}, 0},
		"two hunks":                    {"a\nb\nc\nd\n", "x\nb\nc\ny\n", object{"unified_diff": "--- f\n+++ f\n@@ -1 +1 @@\n-a\n+x\n@@ -4 +4 @@\n-d\n+y\n"}, 0},
		"lines that look like headers": {"-- a\nb\n", "++ c\nb\n", object{"unified_diff": "--- f\n+++ f\n@@ -1,2 +1,2 @@\n--- a\n+++ c\n b\n"}, 0},
		"context stripped":             {"a\n\nb\n", "a\n\nx\n", object{"unified_diff": "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n\n-b\n+x\n"}, 0},
		"keeps no ending":              {"a\nb", "a\nx", object{"unified_diff": "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+x\n\\ No newline at end of file\n"}, 0},
		"takes the ending":             {"a\nb\n", "a\nx", object{"unified_diff": "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n+x\n\\ No newline at end of file\n"}, 0},
		"gives an ending":              {"a\nb", "a\nb\n", object{"unified_diff": "--- f\n+++ f\n@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+b\n"}, 0},
		"all lines away":               {"a\nb\n", "", object{"unified_diff": "--- f\n+++ f\n@@ -1,2 +0,0 @@\n-a\n-b\n"}, 0},
		"into an empty file":           {"", "a\n", object{"unified_diff": "--- f\n+++ f\n@@ -0,0 +1 @@\n+a\n"}, 0},
		"diff of CRLF":                 {"a\r\nb\r\nc\r\n", "a\r\nx\r\nc\r\n", object{"unified_diff": "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"}, 0},
		"diff with CRLF":               {"a\nb\n", "a\nx\n", object{"unified_diff": "--- f\r\n+++ f\r\n@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+x\r\n"}, 0},
		"both with CRLF":               {"a\r\nb\r\n", "a\r\nx\r\n", object{"unified_diff": "--- f\r\n+++ f\r\n@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+x\r\n"}, 0},
		"diff after a mark":            {"\xef\xbb\xbfa\nb\n", "\xef\xbb\xbfx\nb\n", object{"unified_diff": "--- f\n+++ f\n@@ -1,2 +1,2 @@\n-a\n+x\n b\n"}, 0},
	})
}

// edited is one call of edit_file and what it makes of a file.
type edited struct {
	before, want string
	args         object // without the path
	times        int    // replacements; 0 for a diff
}

func checkEdits(t *testing.T, cases map[string]edited) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, map[string]string{"root/f": tc.before}, writable)
			tc.args["path"] = "f"
			c := decode[written](t, p.mustCall(t, editFile, tc.args))
			if got := p.file(t, "f"); got != tc.want {
				t.Fatalf("the file holds %q, want %q", got, tc.want)
			}
			if c.Replacements != tc.times || c.Created || !c.Changed || (tc.times == 0) != (c.Hunks > 0) || len(c.Content) == 0 || len(c.Locations) == 0 {
				t.Errorf("result %+v", c)
			}
			before, after := documentBody(tc.before), documentBody(tc.want)
			for _, d := range c.Content { // all of these files are small: a diff shows them whole
				if d.OldText == nil || !strings.Contains(before, *d.OldText) || !strings.Contains(after, d.NewText) {
					t.Errorf("diff %q -> %q", *d.OldText, d.NewText)
				}
			}
		})
	}
}

func TestEditCreates(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args object
		want string
	}{
		"by edits":      {object{"path": "n", "create_if_missing": true, "edits": replace("", "a\nb\n")}, "a\nb\n"},
		"by a diff":     {object{"path": "n", "create_if_missing": true, "unified_diff": "--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+a\n+b\n"}, "a\nb\n"},
		"by one of git": {object{"path": "n", "create_if_missing": true, "unified_diff": "diff --git a/n b/n\nnew file mode 100644\nindex 000..123\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n"}, "a"},
		"by its hunk":   {object{"path": "n", "create_if_missing": true, "unified_diff": "@@ -0,0 +1 @@\n+a\n"}, "a\n"},
		"with CRLF":     {object{"path": "n", "create_if_missing": true, "unified_diff": "--- /dev/null\r\n+++ b/n\r\n@@ -0,0 +1 @@\r\n+a\r\n"}, "a\r\n"},
	} {
		p := newProject(t, nil, writable)
		c := decode[written](t, p.mustCall(t, editFile, tc.args))
		if got := p.file(t, "n"); got != tc.want || !c.Created || c.Content[0].OldText != nil {
			t.Errorf("%s: %q, %+v", name, got, c)
		}
	}
}

// refused is one call of edit_file and the error code that it gets.
type refused struct {
	args object
	code string
}

// checkRefusals makes each call, and looks that nothing has changed.
func (p *project) checkRefusals(t *testing.T, cases map[string]refused) {
	t.Helper()
	for name, tc := range cases {
		before := p.snapshot(t)
		_, f := p.call(t, editFile, tc.args)
		if f == nil || f.ErrorCode() != tc.code {
			t.Errorf("%s: %v, want %s", name, f, tc.code)
		}
		p.mustNotChange(t, before, name)
	}
}

func TestEditRefuses(t *testing.T) {
	t.Parallel()
	files := map[string]string{"root/f": "one\ntwo\ntwo\naaa\n", "root/bin": "a\x00b", "root/latin": "caf\xe9\n", "root/dir/x": "",
		"home/f": "one\n", "root/crlf": "a\r\nb\r\n", "root/e": ""}
	p := newProject(t, files, writable)
	diff := func(text string) object { return object{"path": "f", "unified_diff": text} }
	p.checkRefusals(t, map[string]refused{
		"neither":               {object{"path": "f"}, codeEditForm},
		"both":                  {object{"path": "f", "edits": replace("one", "1"), "unified_diff": "@@ -1 +1 @@\n-one\n+1\n"}, codeEditForm},
		"no edit":               {object{"path": "f", "edits": []object{}}, "invalid_arguments"},
		"too many edits":        {object{"path": "f", "edits": make([]object, 201)}, "invalid_arguments"},
		"edits is null":         {object{"path": "f", "edits": nil}, "invalid_arguments"},
		"edits is one":          {object{"path": "f", "edits": replace("one", "1")[0]}, "invalid_arguments"},
		"no new":                {object{"path": "f", "edits": []object{{"old": "one"}}}, "invalid_arguments"},
		"unknown in an edit":    {object{"path": "f", "edits": []object{{"old": "one", "new": "1", "count": 1}}}, "invalid_arguments"},
		"replace_all is a word": {object{"path": "f", "edits": []object{{"old": "one", "new": "1", "replace_all": "yes"}}}, "invalid_arguments"},
		"dry_run":               {object{"path": "f", "edits": replace("one", "1"), "dry_run": true}, "invalid_arguments"},
		"empty diff":            {diff(""), "invalid_arguments"},

		"missing":                 {object{"path": "n", "edits": replace("", "x")}, codeFileNotFound},
		"missing, old text":       {object{"path": "n", "edits": replace("a", "x"), "create_if_missing": true}, codeNotFound},
		"missing directory":       {object{"path": "none/n", "edits": replace("", "x"), "create_if_missing": true}, codeNoDirectory},
		"directory":               {object{"path": "dir", "edits": replace("a", "x")}, codeIsDirectory},
		"outside":                 {object{"path": p.home + "/f", "edits": replace("one", "1")}, codeOutsideRoots},
		"binary":                  {object{"path": "bin", "edits": replace("a", "x")}, codeBinaryFile},
		"another encoding":        {object{"path": "latin", "edits": replace("caf", "x")}, codeBinaryFile},
		"binary by diff":          {object{"path": "bin", "unified_diff": "@@ -1 +1 @@\n-a\n+b\n"}, codeBinaryFile},
		"not there":               {object{"path": "f", "edits": replace("three", "3")}, codeNotFound},
		"other spaces":            {object{"path": "f", "edits": replace("one ", "1")}, codeNotFound},
		"other letters":           {object{"path": "f", "edits": replace("One", "1")}, codeNotFound},
		"other endings":           {object{"path": "f", "edits": replace("one\r\n", "1")}, codeNotFound},
		"one of two not there":    {object{"path": "f", "edits": append(replace("one", "1"), replace("three", "3")...)}, codeNotFound},
		"twice":                   {object{"path": "f", "edits": replace("two", "2")}, codeAmbiguous},
		"twice, overlapping":      {object{"path": "f", "edits": replace("aa", "b")}, codeAmbiguous},
		"overlap":                 {object{"path": "f", "edits": append(replace("one\ntwo", "1"), replace("two\ntwo", "2")...)}, codeOverlapping},
		"the same twice":          {object{"path": "f", "edits": append(replace("one", "1"), replace("one", "2")...)}, codeOverlapping},
		"overlap with all":        {object{"path": "f", "edits": append(replace("two\naaa", "1"), object{"old": "two", "new": "2", "replace_all": true})}, codeOverlapping},
		"empty old":               {object{"path": "f", "edits": replace("", "x")}, codeEmptyOld},
		"empty old for all":       {object{"path": "f", "edits": []object{{"old": "", "new": "x", "replace_all": true}}}, codeEmptyOld},
		"empty file, two edits":   {object{"path": "e", "edits": append(replace("", "x"), replace("", "y")...)}, codeEmptyOld},
		"nothing changes":         {object{"path": "f", "edits": replace("one", "one")}, codeNoChange},
		"nothing changes in CRLF": {object{"path": "crlf", "edits": replace("a\r\n", "a\n")}, codeNoChange},
	})
	_, f := p.call(t, editFile, object{"path": "f", "edits": replace("two", "2")})
	if !strings.Contains(f.Message, "lines 2, 3") {
		t.Errorf("the places are not named: %v", f)
	}
}

func TestPatchRefuses(t *testing.T) {
	t.Parallel()
	files := map[string]string{"root/f": "one\ntwo\ntwo\naaa\n", "root/e": ""}
	p := newProject(t, files, writable)
	diff := func(text string) object { return object{"path": "f", "unified_diff": text} }
	head := "--- a/f\n+++ b/f\n"
	good := "@@ -1 +1 @@\n-one\n+1\n"
	p.checkRefusals(t, map[string]refused{
		"no diff":              {diff("one -> 1"), codeInvalidPatch},
		"only a header":        {diff(head), codeInvalidPatch},
		"fenced":               {diff("```diff\n" + head + good + "```\n"), codeInvalidPatch},
		"words before":         {diff("Here it is:\n" + head + good), codeInvalidPatch},
		"words after":          {diff(head + good + "That is it.\n"), codeInvalidPatch},
		"too many lines":       {diff(head + "@@ -1 +1 @@\n-one\n+1\n+more\n"), codeInvalidPatch},
		"too few lines":        {diff(head + "@@ -1,3 +1,3 @@\n-one\n+1\n"), codeInvalidPatch},
		"negative":             {diff(head + "@@ -1,-1 +1,-1 @@\n-one\n+1\n"), codeInvalidPatch},
		"two markers":          {diff(head + "@@ -4 +4 @@\n-aaa\n+b\n\\ No newline at end of file\n\\ No newline at end of file\n"), codeInvalidPatch},
		"no change":            {diff(head + "@@ -1 +1 @@\n one\n"), codeInvalidPatch},
		"bare @@":              {diff(head + "@@\n-one\n+1\n"), codeInvalidPatch},
		"two files":            {diff(head + good + "--- a/g\n+++ b/g\n" + good), codeMultiFile},
		"the file twice":       {diff(head + good + head + "@@ -4 +4 @@\n-aaa\n+b\n"), codeMultiFile},
		"two files of git":     {diff("diff --git a/f b/f\n" + head + good + "diff --git a/g b/g\nnew file mode 100644\n"), codeMultiFile},
		"another file":         {diff("--- a/g\n+++ b/g\n" + good), codePatchOtherPath},
		"from another file":    {diff("--- a/g\n+++ b/f\n" + good), codePatchOtherPath},
		"to another file":      {diff("--- a/f\n+++ b/g\n" + good), codePatchOtherPath},
		"a longer name":        {diff("--- a/f\n+++ b/f.bak\n" + good), codePatchOtherPath},
		"outside by name":      {diff("--- a/../home/f\n+++ b/../home/f\n" + good), codePatchOtherPath},
		"rename":               {diff("diff --git a/f b/g\nsimilarity index 90%\nrename from f\nrename to g\n--- a/f\n+++ b/g\n" + good), codeUnsupported},
		"copy":                 {diff("diff --git a/f b/g\ncopy from f\ncopy to g\n--- a/f\n+++ b/g\n" + good), codeUnsupported},
		"delete":               {diff("--- a/f\n+++ /dev/null\n@@ -1,4 +0,0 @@\n-one\n-two\n-two\n-aaa\n"), codeUnsupported},
		"delete of git":        {diff("diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1,4 +0,0 @@\n-one\n-two\n-two\n-aaa\n"), codeUnsupported},
		"mode":                 {diff("diff --git a/f b/f\nold mode 100644\nnew mode 100755\n--- a/f\n+++ b/f\n" + good), codeUnsupported},
		"a new mode":           {diff("diff --git a/f b/f\nnew mode 100755\n--- a/f\n+++ b/f\n" + good), codeUnsupported},
		"a link":               {object{"path": "n", "create_if_missing": true, "unified_diff": "diff --git a/n b/n\nnew file mode 120000\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+/etc\n\\ No newline at end of file\n"}, codeUnsupported},
		"binary of git":        {diff("diff --git a/f b/f\nindex 1..2 100644\nBinary files a/f and b/f differ\n"), codeUnsupported},
		"create":               {diff("--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"), codePatchFailed},
		"other context":        {diff(head + "@@ -1,2 +1,2 @@\n-one\n+1\n three\n"), codePatchFailed},
		"other removed line":   {diff(head + "@@ -1 +1 @@\n-eins\n+1\n"), codePatchFailed},
		"other place":          {diff(head + "@@ -2 +2 @@\n-one\n+1\n"), codePatchFailed},
		"past the end":         {diff(head + "@@ -9 +9 @@\n-one\n+1\n"), codePatchFailed},
		"far past the end":     {diff(head + "@@ -9223372036854775807 +1 @@\n-one\n+1\n"), codePatchFailed},
		"second does not fit":  {diff(head + good + "@@ -3 +3 @@\n-three\n+3\n"), codePatchFailed},
		"out of order":         {diff(head + "@@ -4 +4 @@\n-aaa\n+b\n@@ -1 +1 @@\n-one\n+1\n"), codePatchFailed},
		"overlapping hunks":    {diff(head + "@@ -1,2 +1,2 @@\n-one\n+1\n two\n@@ -2,2 +2,2 @@\n-two\n+2\n two\n"), codePatchFailed},
		"no context":           {diff(head + "@@ -2,0 +3,1 @@\n+new\n"), codePatchFailed},
		"no context at top":    {diff(head + "@@ -0,0 +1,1 @@\n+new\n"), codePatchFailed},
		"ending in the middle": {diff(head + "@@ -1,2 +1,2 @@\n-one\n+1\n\\ No newline at end of file\n two\n"), codePatchFailed},
		"ending before more":   {diff(head + "@@ -1 +1 @@\n-one\n+1\n\\ No newline at end of file\n"), codePatchFailed},
		"ending that is there": {diff(head + "@@ -4 +4 @@\n-aaa\n\\ No newline at end of file\n+b\n"), codePatchFailed},
		"space at the end":     {diff(head + "@@ -1 +1 @@\n-one \n+1\n"), codePatchFailed},
	})
	_, f := p.call(t, editFile, diff(head+"@@ -1,2 +1,2 @@\n-one\n+1\n three\n"))
	if !strings.Contains(f.Message, `line 2 of the file is "two\n", and the diff has "three\n"`) {
		t.Errorf("the line that does not fit is not named: %v", f)
	}
	abs := filepath.Join(p.root, "f")
	for _, name := range []string{"f", "./f", abs} { // every way to name the file
		p.mustCall(t, editFile, object{"path": name, "unified_diff": "--- " + name + "\n+++ " + name + "\n@@ -4 +4,2 @@\n aaa\n+b\n"})
		p.mustCall(t, editFile, object{"path": name, "unified_diff": "--- a/f\n+++ b/f\n@@ -4,2 +4 @@\n aaa\n-b\n"})
	}
	if got := p.file(t, "f"); got != files["root/f"] {
		t.Errorf("there and back: %q", got)
	}
}

// naive applies edits one after the other to a text in which each was found once.
func naive(text string, edits []replacement) (string, bool) {
	type place struct {
		at int
		r  replacement
	}
	var places []place
	for _, r := range edits {
		if string(r.Old) == "" || string(r.Old) == string(r.New) {
			return "", false
		}
		found := 0
		for at := 0; at+len(string(r.Old)) <= len(text); at++ {
			if text[at:at+len(string(r.Old))] == string(r.Old) {
				places = append(places, place{at, r})
				found++
				if r.All {
					at += len(string(r.Old)) - 1
				}
			}
		}
		if found == 0 || found > 1 && !r.All {
			return "", false
		}
	}
	owner := make([]int, len(text)) // which edit a byte belongs to
	starts := make(map[int]int)
	for i, p := range places {
		for at := p.at; at < p.at+len(p.r.Old); at++ {
			if owner[at] != 0 {
				return "", false
			}
			owner[at] = i + 1
		}
		starts[p.at] = i + 1
	}
	var b strings.Builder
	for at := range len(text) {
		if i := starts[at]; i > 0 {
			b.WriteString(string(places[i-1].r.New))
		}
		if owner[at] == 0 {
			b.WriteByte(text[at])
		}
	}
	return b.String(), true
}

// FuzzEdits holds the replacing against one that goes byte by byte: the same text, or refused by both.
func FuzzEdits(f *testing.F) {
	f.Add("one\ntwo\n", "one", "1", "two", "2", false)
	f.Add("aaa", "aa", "b", "a", "c", true)
	f.Add("a\r\nb\r\n", "a\nb", "x", "b", "y\n", false)
	f.Add("abab", "ab", "", "ba", "x", true)
	f.Add("\xef\xbb\xbfa\r\n", "a", "\xef\xbb\xbf", "\r", "\n", false)
	f.Fuzz(func(t *testing.T, text, old1, new1, old2, new2 string, all bool) {
		if text == "" {
			return // its own rule
		}
		d := parseDocument([]byte(text))
		if d.binary {
			return
		}
		if got := string(d.bytes()); got != text {
			t.Fatalf("%q is read as %q", text, got)
		}
		if d.body == "" {
			return
		}
		edits := []replacement{{wholeText(old1), wholeText(new1), all}, {wholeText(old2), wholeText(new2), false}}
		plain := edits
		if d.crlf {
			plain = []replacement{{wholeText(toLF(old1)), wholeText(toLF(new1)), all}, {wholeText(toLF(old2)), wholeText(toLF(new2)), false}}
		}
		want, fits := naive(d.body, plain)
		got, _, err := replaceAll(d, edits)
		if fits != (err == nil) {
			t.Fatalf("%q %+v: error %v, but it fits: %t", d.body, edits, err, fits)
		}
		if err == nil && (got.body != want || got.crlf != d.crlf || got.bom != d.bom) {
			t.Fatalf("%q %+v: %q, want %q", d.body, edits, got.body, want)
		}
		if err != nil && got.body != d.body {
			t.Fatalf("refused, and yet %q", got.body)
		}
	})
}

// applyNaively walks through a diff of the file f line by line and says what it makes of text, if it fits to the letter.
func applyNaively(text, diff string) (string, bool) {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	var out []string
	at := 0 // lines of text that are in out or gone
	hunks := strings.Split("\n"+diff, "\n@@ -")
	for _, hunk := range hunks[1:] {
		header, body, _ := strings.Cut(hunk, "\n")
		numbers, _, _ := strings.Cut(header, " ")
		start := 0
		for _, c := range strings.TrimLeft(strings.SplitN(numbers, ",", 2)[0], "+") {
			start = start*10 + int(c-'0')
		}
		for at < start-1 && at < len(lines) {
			out = append(out, lines[at])
			at++
		}
		rows := strings.SplitAfter(strings.TrimRight(body, "\n")+"\n", "\n")
		rows = rows[:len(rows)-1]
		for i, row := range rows {
			if strings.HasPrefix(row, "\\ ") {
				continue
			}
			line := row[1:]
			if row == "\n" {
				line = row
			}
			if i+1 < len(rows) && strings.HasPrefix(rows[i+1], "\\ ") {
				line = strings.TrimSuffix(line, "\n")
			}
			if row[0] != '+' {
				if at >= len(lines) || lines[at] != line {
					return "", false
				}
				at++
			}
			if row[0] != '-' {
				out = append(out, line)
			}
		}
	}
	return strings.Join(append(out, lines[at:]...), ""), true
}

// FuzzPatch feeds any text as a diff: it is refused, or what it makes of the file is what a walk through it makes.
func FuzzPatch(f *testing.F) {
	head := "--- a/f\n+++ b/f\n"
	f.Add("one\ntwo\nthree\n", head+"@@ -1,2 +1,2 @@\n-one\n+1\n two\n")
	f.Add("a\nb", head+"@@ -2 +2,2 @@\n-b\n\\ No newline at end of file\n+b\n+c\n\\ No newline at end of file\n")
	f.Add("a\nb\n", head+"@@ -1 +1 @@\n-a\n+x\n\\ No newline at end of file\n@@ -2 +2 @@\n-b\n+y\n")
	f.Add("", head+"@@ -0,0 +1 @@\n+a\n")
	f.Add("a\nb\nc\n", head+"@@ -2,0 +3 @@\n+x\n")
	f.Add("a\n", "@@ -1 +1 @@\n-a\n+b\n+c\n")
	f.Add("\n\n", head+"@@ -1,2 +1 @@\n\n-\n")
	f.Add("x", "diff --git a/f b/f\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\n")
	f.Add("a\n", head+"@@ -1,0 +1,0 @@\n@@ -9223372036854775807,9223372036854775807 +0,0 @@\n-a\n")
	f.Fuzz(func(t *testing.T, text, diff string) {
		d := parseDocument([]byte(text))
		if d.binary || len(text) > 10_000 || len(diff) > 10_000 {
			return
		}
		p := patch{text: diff, names: []string{"f"}}
		got, hunks, err := p.apply(d)
		if err != nil {
			if got.body != d.body {
				t.Fatalf("refused, and yet %q", got.body)
			}
			return
		}
		if hunks == 0 {
			t.Fatalf("%q %q: nothing was applied", text, diff)
		}
		if d.crlf || allCRLF(diff) {
			diff = toLF(diff)
		}
		want, fits := applyNaively(d.body, diff)
		if !fits || got.body != want {
			t.Fatalf("%q %q: %q, want %q (fits: %t)", d.body, diff, got.body, want, fits)
		}
	})
}

// FuzzRoundTrip makes a diff of two texts and applies it: whatever the tools show can be sent back to them.
func FuzzRoundTrip(f *testing.F) {
	f.Add("one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n", "one\n2\nthree\nfour\nfive\nsix\nseven\n8")
	f.Add("a", "a\n")
	f.Add("a\n", "a")
	f.Add("\n", "\n\n\n")
	f.Add("x\n", "")
	f.Fuzz(func(t *testing.T, before, after string) {
		if strings.ContainsAny(before+after, "\r\x00") || before == after || before == "" {
			return
		}
		d, want := documentOf(before), documentOf(after)
		if d.body == "" || d.body == want.body {
			return
		}
		p := patch{text: udiff.Unified("a/f", "b/f", d.body, want.body), names: []string{"f"}}
		got, _, err := p.apply(d)
		if err != nil || got.body != want.body {
			t.Fatalf("%q -> %q by %q: %q, %v", d.body, want.body, p.text, got.body, err)
		}
	})
}
