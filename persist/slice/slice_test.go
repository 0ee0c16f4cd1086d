package slice_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/theory/jsonpath"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/preview"
	"github.com/mcp-toolhub/mcp-toolhub/persist/slice"
)

// ask reads one page.
func ask(t testing.TB, result, arguments string, limit int) (slice.Answer, error) {
	t.Helper()
	r, err := slice.Parse([]byte(arguments))
	if err != nil {
		return slice.Answer{}, err
	}
	return slice.Read(t.Context(), []byte(result), r, limit)
}

// all reads all pages, and checks that each keeps the limit.
func all(t testing.TB, result string, r slice.Request, limit int) ([]byte, error) {
	t.Helper()
	var whole []byte
	for range 100_000 {
		a, err := slice.Read(t.Context(), []byte(result), r, limit)
		if err != nil {
			return nil, err
		}
		if n := preview.Size([]byte(a.Text())) + preview.Size([]byte(a.Note)); n > max(limit, slice.MinLimit) {
			t.Fatalf("a page has %d characters, over %d: %q", n, limit, a.Note)
		}
		if !utf8.ValidString(a.Text()) || !utf8.ValidString(a.Note) {
			t.Fatalf("a page is no UTF-8: %q", a.Note)
		}
		whole = append(whole, a.Data...)
		if a.Next == "" {
			return whole, nil
		}
		if len(a.Data) == 0 || a.Next == r.Cursor {
			t.Fatalf("a page does not go on: %+v after %q", a, r.Cursor)
		}
		r.Cursor = a.Next
	}
	t.Fatal("the pages do not end")
	return nil, nil
}

// textResult is a result with one text block.
func textResult(text string) string {
	return `{"content":[{"type":"text","text":` + string(rawjson.Quote(text)) + `}]}`
}

func TestParts(t *testing.T) {
	t.Parallel()
	poem := textResult("one\ntwo\nthree\nfour\nfive\n")
	doc := textResult(`{"total":2, "items":[{"id":1,"na/me":"a~b"},{"id":2,"na/me":"c\nd"}],"big":12345678901234567890}`)
	image := `{"content":[{"type":"image","mimeType":"image/png","data":"` + base64.StdEncoding.EncodeToString([]byte("\x89PNG\xff")) + `"},` +
		`{"type":"text","text":"hi"}],"structuredContent":{"a":[1,2,3]}}`
	for _, c := range []struct{ result, arguments, want string }{
		{poem, `{"id":"r"}`, "one\ntwo\nthree\nfour\nfive\n"},
		{poem, `{"id":"r","lines":"2-3"}`, "two\nthree\n"},
		{poem, `{"id":"r","lines":"4-"}`, "four\nfive\n"},
		{poem, `{"id":"r","lines":"-2"}`, "four\nfive\n"},
		{poem, `{"id":"r","lines":"5"}`, "five\n"},
		{poem, `{"id":"r","bytes":"0-2"}`, "one"},
		{poem, `{"id":"r","bytes":"-5"}`, "five\n"},
		{poem, `{"id":"r","grep":"^t"}`, "2:two\n3:three\n"},
		{poem, `{"id":"r","grep":"one|five","context":1}`, "1:one\n2-two\n--\n4-four\n5:five\n"},
		{poem, `{"id":"r","grep":"o","count":true}`, `{"matching_lines":3,"matches":3}`},
		{poem, `{"id":"r","block":0,"pointer":"/content/0/type"}`, `"text"`},
		{poem, `{"id":"r","block":0,"pointer":"/content/0/text","lines":"1"}`, "one\n"},
		{doc, `{"id":"r","pointer":"/items/1"}`, `{"id":2,"na/me":"c\nd"}`},
		{doc, `{"id":"r","pointer":"/items/0/na~1me"}`, `"a~b"`},
		{doc, `{"id":"r","pointer":"/items/1/na~1me","lines":"2"}`, `d`},
		{doc, `{"id":"r","pointer":"/big"}`, `12345678901234567890`},
		{doc, `{"id":"r","pointer":"/items","path":"$[*]","count":true}`, `{"values":2}`},
		{doc, `{"id":"r","path":"$.items[?!match(@.nope,'x')]","count":true}`, `{"values":2}`},
		{doc, `{"id":"r","path":"$.items[*].id"}`, "/items/0/id: 1\n/items/1/id: 2\n"},
		{doc, `{"id":"r","path":"$.items[?@.id>1]['na/me']"}`, "/items/1/na~1me: \"c\\nd\"\n"},
		{doc, `{"id":"r","path":"$..id","count":true}`, `{"values":2}`},
		{doc, `{"id":"r","path":"$.items[?match(@.nope,'x')]","count":true}`, `{"values":0}`},
		{doc, `{"id":"r","pointer":"/items","path":"$[-1].id"}`, "/1/id: 2\n"},
		{image, `{"id":"r","block":1}`, "\x89PNG\xff"},
		{image, `{"id":"r","pointer":"/structuredContent/a/2"}`, "3"},
		{image, `{"id":"r","block":2}`, "hi"},
	} {
		a, err := ask(t, c.result, c.arguments, 10_000)
		if err != nil {
			t.Errorf("%s: %v", c.arguments, err)
		} else if string(a.Data) != c.want || a.Next != "" {
			t.Errorf("%s: got %q with next %q, want %q", c.arguments, a.Data, a.Next, c.want)
		}
	}
}

// TestFaults: each fault of a request is an InputError, a sentence that says what to do.
func TestFaults(t *testing.T) {
	t.Parallel()
	result := textResult(`{"items":[1,2],"n":3}`)
	for arguments, want := range map[string]string{
		`{}`:                                     "Give id",
		`{"id":"r","lines":"1","grep":"x"}`:      "only one of",
		`{"id":"r","lines":"1","count":true}`:    "count goes with",
		`{"id":"r","lines":"9-12"}`:              "The last of the lines here is number 1: 9-12 begins behind it.",
		`{"id":"r","lines":"0-3"}`:               "takes a range",
		`{"id":"r","bytes":"5-2"}`:               "takes a range",
		`{"id":"r","bytes":"x"}`:                 "takes a range",
		`{"id":"r","block":7}`:                   "The result has 1 content block",
		`{"id":"r","pointer":"items"}`:           "begins with /",
		`{"id":"r","pointer":"/itmes"}`:          "it has items, n",
		`{"id":"r","pointer":"/items/2"}`:        "has 2 elements",
		`{"id":"r","pointer":"/items/01"}`:       "by its index",
		`{"id":"r","pointer":"/n/x"}`:            "end the pointer there",
		`{"id":"r","path":"$.["}`:                "no JSONPath",
		`{"id":"r","grep":"("}`:                  "no regular expression",
		`{"id":"r","context":3}`:                 "context goes with grep",
		`{"id":"r","cursor":"AAAA"}`:             "another request",
		`{"id":"r","lines":7}`:                   "input schema",
		`{"id":"r","block":1,"path":"$[?@..a]"}`: "",
	} {
		_, err := ask(t, result, arguments, 10_000)
		var fault slice.InputError
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", arguments, err)
			}
		} else if !errors.As(err, &fault) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", arguments, err, want)
		}
	}
	if _, err := ask(t, textResult("a,b\n1,2\n"), `{"id":"r","pointer":"/a"}`, 1000); err == nil || !strings.Contains(err.Error(), "no JSON") {
		t.Errorf("pointer into text: %v", err)
	}
}

// TestCursorOfAnother: a cursor goes on with its own request alone.
func TestCursorOfAnother(t *testing.T) {
	t.Parallel()
	result := textResult(strings.Repeat("a line of some length\n", 400))
	a, err := ask(t, result, `{"id":"r"}`, 1000)
	if err != nil || a.Next == "" {
		t.Fatal(err, a.Next)
	}
	b, err := ask(t, result, `{"id":"r","cursor":"`+a.Next+`"}`, 1000)
	if err != nil || len(b.Data) == 0 {
		t.Fatal(err)
	}
	if _, err := ask(t, result, `{"id":"r","lines":"1-300","cursor":"`+a.Next+`"}`, 1000); err == nil {
		t.Error("the cursor of another request was taken")
	}
	if _, err := ask(t, result, `{"id":"other","cursor":"`+a.Next+`"}`, 1000); err == nil {
		t.Error("the cursor of another result was taken")
	}
}

// FuzzStretch: bytes and lines are the bytes that were stored, on pages of any size.
func FuzzStretch(f *testing.F) {
	f.Add("one\ntwo\r\nthree", 0, 5, 700)
	f.Add("é\xff\x00\u2028", 1, 2, 1)
	f.Add(strings.Repeat("äöü \n", 1000), 7, 4000, 900)
	f.Fuzz(func(t *testing.T, text string, from, to, limit int) {
		result := textResult(text)
		stored := strings.ToValidUTF8(text, "\uFFFD")
		quoted, _ := json.Marshal(text)
		_ = json.Unmarshal(quoted, &stored)
		limit = limit%5000 + 1
		whole, err := all(t, result, slice.Request{ID: "r", Block: 1}, limit)
		if err != nil || string(whole) != stored {
			t.Fatalf("all of it: %v: %q is not %q", err, whole, stored)
		}
		if from < 0 || to < from || from >= len(stored) {
			return
		}
		past := min(to, len(stored)-1) + 1
		part, err := all(t, result, slice.Request{ID: "r", Block: -1, Bytes: strconv.Itoa(from) + "-" + strconv.Itoa(to)}, limit)
		if err != nil || string(part) != stored[from:past] {
			t.Fatalf("bytes: %v: %q is not %q", err, part, stored[from:past])
		}
		lines := strings.SplitAfter(stored, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		if from >= len(lines) {
			return
		}
		past = min(to, len(lines)-1) + 1
		part, err = all(t, result, slice.Request{ID: "r", Lines: strconv.Itoa(from+1) + "-" + strconv.Itoa(to + 1)[:len(strconv.Itoa(to+1))], Block: 1}, limit)
		if want := strings.Join(lines[from:past], ""); err != nil || string(part) != want {
			t.Fatalf("lines: %v: %q is not %q", err, part, want)
		}
	})
}

// FuzzBlob: binary content is the bytes that were stored.
func FuzzBlob(f *testing.F) {
	f.Add([]byte("\x89PNG\r\n\x1a\n"), 700)
	f.Add(bytes.Repeat([]byte{0xff, 0}, 3000), 900)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		result := `{"content":[{"type":"image","data":"` + base64.StdEncoding.EncodeToString(data) + `"}]}`
		whole, err := all(t, result, slice.Request{ID: "r", Block: 1}, limit%5000)
		if err != nil || !bytes.Equal(whole, data) {
			t.Fatalf("%v: %q is not %q", err, whole, data)
		}
	})
}

// FuzzGrep: the pages of any search are the whole search, which finds what a plain loop finds.
func FuzzGrep(f *testing.F) {
	f.Add("one\ntwo\nthree\n", "o", 1, 700)
	f.Add(strings.Repeat("abc def\n", 300), "^a", 0, 700)
	f.Add(strings.Repeat("x", 3000)+"needle"+strings.Repeat("ü", 3000)+"needle\nafter\n", "needle", 2, 700)
	f.Add(strings.Repeat("ab", 5000), "b", 0, 800)
	f.Add("a\n\n\n\n\nb\nc\n\n\nd", "[ad]", 2, 650)
	f.Fuzz(func(t *testing.T, text, pattern string, around, limit int) {
		result := textResult(text)
		r := slice.Request{ID: "r", Block: 1, Grep: pattern, Context: max(0, around%101)}
		whole, err := all(t, result, r, 1<<30)
		if err != nil {
			return
		}
		pages, err := all(t, result, r, limit%5000)
		if err != nil || string(pages) != string(whole) {
			t.Fatalf("%v: pages %q are not %q", err, pages, whole)
		}
	})
}

// FuzzPath: a path selects what the library selects, and pages are the whole.
func FuzzPath(f *testing.F) {
	doc := `{"a":[{"id":1,"s":"x"},{"id":2,"s":"yy","k":[1,[2,3]]},{"id":2.5}],"b":{"c":null,"d/e":true},"x y":[[],{}]}`
	for _, path := range []string{"$", "$.a[*].id", "$..id", "$.a[?@.id>1]", "$.a[::-1]", "$.a[-1:]", "$..*", "$.a[0,2]['id','s']", "$[?@.c==null]",
		"$.a[?length(@.s)==2]", "$..[?@==$.a[0].id]", "$.a[1:9:2]", "$.b['d/e']", "$.a[?match(@.s,'y+')]", "$..[-1]", "$..a..id"} {
		f.Add(doc, path, 700)
	}
	f.Fuzz(func(t *testing.T, doc, path string, limit int) {
		if path == "" || !rawjson.Valid([]byte(doc)) || !utf8.ValidString(doc) || len(doc) > 2000 {
			return
		}
		if _, twice := rawjson.Repeated([]byte(doc), bytes.Compare); twice {
			return
		}
		r := slice.Request{ID: "r", Block: 1, Path: path}
		whole, err := all(t, textResult(doc), r, 1<<30)
		if err != nil {
			return
		}
		pages, err := all(t, textResult(doc), r, limit%5000)
		if err != nil || string(pages) != string(whole) {
			t.Fatalf("%v: pages %q are not %q", err, pages, whole)
		}
		compare(t, doc, path, string(whole))
	})
}

// compare checks what was selected, a line for each value, against what the library selects.
func compare(t *testing.T, doc, path, got string) {
	t.Helper()
	parsed, err := jsonpath.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(doc))
	decoder.UseNumber()
	var root any
	if err := decoder.Decode(&root); err != nil {
		return
	}
	var want []string
	var nodes jsonpath.LocatedNodeList
	func() {
		defer func() { _ = recover() }() // its match and search do where an argument selects nothing
		nodes = parsed.SelectLocated(root)
	}()
	if nodes == nil {
		return
	}
	for _, node := range nodes {
		want = append(want, node.Path.Pointer()+": "+string(canonical(t, node.Node)))
	}
	var have []string
	rest := []byte(got)
	for len(rest) > 0 {
		pointer, value, ok := cutEntry(rest)
		if !ok {
			return // a name holds what looks like the end of a pointer
		}
		rest = rest[len(pointer)+2+len(value)+1:]
		decoder := json.NewDecoder(bytes.NewReader(value))
		decoder.UseNumber()
		var v any
		if err := decoder.Decode(&v); err != nil {
			return
		}
		have = append(have, string(pointer)+": "+string(canonical(t, v)))
	}
	slices.Sort(want) // the library goes through objects in no order
	slices.Sort(have)
	if !reflect.DeepEqual(have, want) {
		t.Fatalf("%s of %s: got %q, want %q", path, doc, have, want)
	}
}

// cutEntry reads a pointer and the value after it.
func cutEntry(entry []byte) (pointer, value []byte, ok bool) {
	n := bytes.Index(entry, []byte(": "))
	if n < 0 {
		return nil, nil, false
	}
	end := rawjson.SkipValue(entry, n+2)
	if end == n+2 || end >= len(entry) || entry[end] != '\n' {
		return nil, nil, false
	}
	return entry[:n], entry[n+2 : end], true
}

func canonical(t *testing.T, v any) []byte {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPointers: every value of a document is found by its pointer, as it is written.
func TestPointers(t *testing.T) {
	t.Parallel()
	doc := `{"a":[1, {"b~":"x" , "":[ ]}], "c/d":{"e\u0041":1.50}}`
	found, err := all(t, textResult(doc), slice.Request{ID: "r", Block: 1, Path: "$..*"}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(found)) {
		pointer, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		a, err := ask(t, textResult(doc), fmt.Sprintf(`{"id":"r","pointer":%q}`, pointer), 10_000)
		if err != nil || string(a.Data) != value {
			t.Errorf("%s: got %q, %v, want %q", pointer, a.Data, err, value)
		}
		n++
	}
	if n != 7 {
		t.Errorf("found %d values: %s", n, found)
	}
}

// TestPointersOfTheResult: the pointers that a preview gives for members of a result are of the result, also where the only block is read.
func TestPointersOfTheResult(t *testing.T) {
	t.Parallel()
	of := func(text string) string {
		return fmt.Sprintf(`{"content":[{"type":"text","text":%q}],"_meta":{"com.example/big":"long"}}`, text)
	}
	for _, c := range []struct{ text, pointer, want string }{
		{"plain", "/_meta/com.example~1big", `"long"`},
		{"plain", "/content/0/text", `"plain"`},
		{"plain", "/_meta/none", "needs JSON"},
		{"plain", "/_metal", "needs JSON"},
		{`{"a":1}`, "/_meta", `{"com.example/big":"long"}`},
		{`{"a":1}`, "/b", "There is no member"},
		{`{"_meta":2}`, "/_meta", "2"},
	} {
		a, err := ask(t, of(c.text), fmt.Sprintf(`{"id":"r","pointer":%q}`, c.pointer), 10_000)
		if got := string(a.Data); err == nil && got != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: got %q, %v, want %q", c.pointer, c.text, got, err, c.want)
		}
	}
	_, err := ask(t, of("plain"), `{"id":"r","block":1,"pointer":"/_meta"}`, 10_000)
	if err == nil || !strings.Contains(err.Error(), "needs JSON") {
		t.Errorf("of the block that is named: %v", err)
	}
}

// TestPointersOfTheFirstBlockThatFits: what a preview says of a content block is found without its number.
func TestPointersOfTheFirstBlockThatFits(t *testing.T) {
	t.Parallel()
	const result = `{"content":[{"type":"text","text":"plain"},{"type":"text","text":"{\"a\":[1,2],\"b\":3}"},{"type":"text","text":"{\"b\":4}"}]}`
	for pointer, want := range map[string]string{
		"/a/1": "2", "/content/0/text": `"plain"`, "": result,
		"/b": "3",
		"/c": "it has content",
	} {
		a, err := ask(t, result, fmt.Sprintf(`{"id":"r","pointer":%q}`, pointer), 10_000)
		if got := string(a.Data); err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, %v, want %q", pointer, got, err, want)
		}
	}
}

// TestFile reads an artifact: the pages are those of a result with the artifact as its only content block.
func TestFile(t *testing.T) {
	t.Parallel()
	for mediaType, data := range map[string]string{"text/plain": strings.Repeat("one line\nanother “one”\n", 100), "application/json": `{"a":[1,2,{"b":"c"}]}`,
		"application/octet-stream": strings.Repeat("\x00\xff", 1000), "text/x-none": ""} {
		result := `{"content":[{"type":"resource","resource":` + string(tool.ResourceContents("a:b", mediaType, []byte(data))) + `}]}`
		for _, arguments := range []string{`{"bytes":"0-"}`, `{"bytes":"3-"}`, `{"lines":"2-90"}`, `{"grep":"an|\"c\"","context":1}`, `{"grep":"o","count":true}`, `{"describe":true}`,
			`{"path":"$.a[*]"}`, `{"pointer":"/a/2/b","bytes":"0-"}`, `{"block":1}`, `{"lines":"x"}`} {
			r, err := slice.Parse([]byte(`{"id":"res_a",` + strings.TrimPrefix(arguments, "{")))
			if err != nil {
				t.Fatalf("%s: %v", arguments, err)
			}
			other := r
			for range 100 {
				a, aErr := slice.Read(t.Context(), []byte(result), r, 700)
				b, bErr := slice.ReadFile(t.Context(), []byte(data), mediaType, other, 700)
				r.Cursor, other.Cursor = a.Next, b.Next
				if (aErr == nil) != (bErr == nil) || string(a.Data) != string(b.Data) || a.Binary != b.Binary || (a.Next == "") != (b.Next == "") {
					t.Fatalf("%s of %s: %q, %v, and of the file %q, %v", arguments, mediaType, a.Data, aErr, b.Data, bErr)
				}
				if a.Next == "" {
					break
				}
			}
		}
	}
}
