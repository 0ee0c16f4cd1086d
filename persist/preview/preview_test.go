package preview_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/persist/preview"
)

// of makes a preview, and checks what is true of each.
func of(t testing.TB, result string, limit int) []json.RawMessage {
	t.Helper()
	content := preview.Of([]byte(result), limit)
	size := 0
	for i, block := range content {
		if !json.Valid(block) || !utf8.Valid(block) {
			t.Fatalf("block %d is no JSON in UTF-8: %q", i, block)
		}
		size += utf8.RuneCount(block) + 1
	}
	if size > max(0, limit) {
		t.Fatalf("the preview has %d characters, over %d: %s", size, limit, content)
	}
	again := preview.Of([]byte(result), limit)
	if !slices.EqualFunc(content, again, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		t.Fatal("two previews of the same result differ")
	}
	return content
}

// read is what a model reads of a preview.
func read(content []json.RawMessage) string {
	var b strings.Builder
	for _, block := range content {
		if text, ok := rawjson.GetString(block, "text"); ok {
			b.WriteString(text)
		} else {
			b.Write(block)
		}
		b.WriteString("\n\n")
	}
	return b.String()
}

func quote(text string) string { return string(rawjson.Quote(text)) }

func textResult(text string) string {
	return `{"content":[{"type":"text","text":` + quote(text) + `}]}`
}

// items is a JSON object with n items, each with a body of up to so many characters.
func items(n, body int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"total":%d,"next":null,"items":[`, n)
	for i := range n {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"id":%d,"name":"name \"%d\"","state":"open","body":%q}`, i, i, strings.Repeat("word ", i%7*body/30))
	}
	b.WriteString(`]}`)
	return b.String()
}

func TestOf(t *testing.T) {
	t.Parallel()
	var lines, events strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&lines, "line %d\n", i+1)
		fmt.Fprintf(&events, "{\"n\":%d}\n", i+1)
	}
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewRGBA(image.Rect(0, 0, 300, 200))); err != nil {
		t.Fatal(err)
	}
	binary := base64.StdEncoding.EncodeToString(append(picture.Bytes(), make([]byte, 5000)...))
	for name, c := range map[string]struct {
		result string
		want   []string
		not    []string
	}{
		"text": {textResult(lines.String()), []string{"content block 1 of 1: text, 8,893 characters in 1,000 lines", "line 1\n", "line 1000\n",
			"... left out: lines ", " of 1000 ("}, []string{"line 500\n"}},
		"one long line": {textResult(strings.Repeat("äb", 5000)), []string{"left out: bytes ", " of 15000"}, nil},
		"JSON": {textResult(items(1240, 100)), []string{`"total": 1240`, `"next": null`, `"items": array of 1,240 elements:`,
			`{"id":0,"name":"name \"0\"",`, " more, from /items/"}, nil},
		"structured": {`{"content":[],"structuredContent":` + items(50, 1000) + `}`, []string{"structuredContent: JSON", "array of 50 elements:",
			" more, from /structuredContent/items/"}, nil},
		"twice": {`{"content":[{"type":"text","text":` + quote(items(500, 10)) + `}],"structuredContent":` + items(500, 10) + `}`,
			[]string{"structuredContent: the same as the content"}, nil},
		"mixed":      {textResult(`[1,"a",{"b":1},{"c":2},` + strings.Repeat("null,", 2000) + `0]`), []string{"array of 2,005 elements:\n  1\n  \"a\"\n  {\"b\":1}\n", " more, from /"}, nil},
		"JSON Lines": {textResult(events.String()), []string{"characters in 1,000 lines", "{\"n\":1}\n", "{\"n\":1000}"}, nil},
		"image": {`{"content":[{"type":"image","mimeType":"image/png","data":"` + binary + `"}]}`, []string{
			fmt.Sprintf("image, image/png, 300 x 200 pixels, %d", (picture.Len()+5000)/1000)}, nil},
		"audio":    {`{"content":[{"type":"audio","mimeType":"audio/wav","data":"` + binary + `"}]}`, []string{"audio, audio/wav, "}, nil},
		"resource": {`{"content":[{"type":"resource","resource":{"uri":"file:///a.txt","text":` + quote(lines.String()) + `}}]}`, []string{"resource file:///a.txt, text, 8,893 characters", "line 1\n"}, nil},
		"meta":     {`{"content":[],"_meta":{"log":` + quote(lines.String()) + `}}`, []string{"_meta: JSON, "}, nil},
		"links":    {`{"content":[{"type":"text","text":` + quote(lines.String()) + `},{"type":"resource_link","uri":"x:y","name":"n"}],"_meta":{"a":1}}`, []string{`{"type":"resource_link","uri":"x:y","name":"n"}`}, []string{"_meta"}},
		"audience": {`{"content":[{"type":"text","text":` + quote(lines.String()) + `,"annotations":{"audience":["user"]}}]}`, []string{"line 1\n"}, nil},
	} {
		content := of(t, c.result, 3000)
		got := read(content)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: nothing says %q: %s", name, want, got)
			}
		}
		for _, not := range c.not {
			if strings.Contains(got, not) {
				t.Errorf("%s: something says %q: %s", name, not, got)
			}
		}
		if name == "audience" && !bytes.Contains(content[0], []byte(`"annotations":{"audience":["user"]}`)) {
			t.Errorf("the annotations are lost: %s", content[0])
		}
	}
}

// TestWholeBlocks: what fits stays as it is, and the rest of the limit goes to what does not.
func TestWholeBlocks(t *testing.T) {
	t.Parallel()
	small := `{"type":"text", "text":"small", "_meta":{"a":1}}`
	long := quote(strings.Repeat("a long line\n", 2000))
	content := of(t, `{"content":[`+small+`,{"type":"text","text":`+long+`},`+small+`]}`, 4000)
	if len(content) != 3 || string(content[0]) != small || string(content[2]) != small {
		t.Fatalf("small blocks changed: %s", content)
	}
	if n := utf8.RuneCount(content[1]); n < 3400 {
		t.Errorf("the long block has %d characters of 4000", n)
	}
}

// TestManyBlocks: of more blocks than fit, the first and the last are shown, and the number of the others.
func TestManyBlocks(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `,{"type":"text","text":"block %d %s"}`, i, strings.Repeat("x", 300))
	}
	got := read(of(t, `{"content":[`+b.String()[1:]+`]}`, 3000))
	for _, want := range []string{"block 0 ", "block 999 ", "left out: 989 parts of 1000"} {
		if !strings.Contains(got, want) {
			t.Errorf("nothing says %q: %s", want, got)
		}
	}
}

// TestPixels: what is said of a picture is what its decoder says.
func TestPixels(t *testing.T) {
	t.Parallel()
	picture := image.NewPaletted(image.Rect(0, 0, 321, 123), palette.WebSafe)
	var asPNG, asJPEG, asGIF bytes.Buffer
	for _, err := range []error{png.Encode(&asPNG, picture), jpeg.Encode(&asJPEG, picture, nil), gif.Encode(&asGIF, picture, nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for want, data := range map[string]string{
		"image/png, 321 x 123 pixels":  asPNG.String(),
		"image/jpeg, 321 x 123 pixels": asJPEG.String(),
		"image/gif, 321 x 123 pixels":  asGIF.String(),
	} {
		if got := preview.Describe([]byte(data), "", 500); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		for n := range min(len(data), 200) { // no header that is cut short is trouble
			preview.Describe([]byte(data[:n]), "", 500)
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add(`{"content":[{"type":"text","text":"a\nb\nc"}]}`, 100)
	f.Add(textResult(items(20, 100)), 900)
	f.Add(`{"content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"},{"type":"audio","data":"!!"},{"type":"x"},7,null]}`, 300)
	f.Add(`{"content":{"a":"\ud800"},"structuredContent":{"a":[1,2,3,{"b":"`+strings.Repeat("é\\u0001", 100)+`"}]},"_meta":{}}`, 250)
	f.Fuzz(func(t *testing.T, result string, limit int) {
		if !rawjson.Valid([]byte(result)) || !rawjson.IsObject([]byte(result)) {
			result = textResult(result)
		}
		of(t, result, limit%20_000)
	})
}

func FuzzDescribe(f *testing.F) {
	f.Add([]byte("a,b\n1,2\n3,4\n5,6\n"), "text/csv", 100)
	f.Add([]byte(`{"a":[1,{"b":2}]}`), "", 50)
	f.Add([]byte("\xff\xd8\xff\xe0\x00\x10"), "image/png", 80)
	f.Fuzz(func(t *testing.T, data []byte, mediaType string, limit int) {
		limit %= 20_000
		got := preview.Describe(data, mediaType, limit)
		if !utf8.ValidString(got) || preview.Size([]byte(got)) > max(0, limit) {
			t.Fatalf("%d characters, over %d: %q", preview.Size([]byte(got)), limit, got)
		}
	})
}

// FuzzUnquote: strings are decoded as encoding/json decodes them, and Size is their size in JSON.
func FuzzUnquote(f *testing.F) {
	for _, s := range []string{`a`, `a\n\u00e9\\`, `\ud83d\ude00`, `\ud83d x`, `\ude00`, `\ud83d\ud83d\ude00`, `\/\b\f\r\t\"`, "\xff", `\u0001\u2028`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, inner string) {
		quoted := []byte(`"` + inner + `"`)
		var want string
		if json.Unmarshal(quoted, &want) != nil {
			return
		}
		got := preview.Unquote(quoted)
		if string(got) != want {
			t.Fatalf("%q: got %q, want %q", quoted, got, want)
		}
		if n := utf8.RuneCount(rawjson.Quote(want)) - 2; preview.Size(got) != n {
			t.Fatalf("%q: size %d, want %d", got, preview.Size(got), n)
		}
	})
}

// BenchmarkOf previews 10 MiB of JSON: as structuredContent, as text, beside json.Valid of the same bytes.
func BenchmarkOf(b *testing.B) {
	text := items(78_000, 150)
	structured := []byte(`{"content":[],"structuredContent":` + text + `}`)
	inText := []byte(textResult(text))
	lines := []byte(textResult(strings.Repeat("a line of some text that goes on\n", 10<<20/33)))
	for name, result := range map[string][]byte{"structured": structured, "json text": inText, "lines": lines} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(result)))
			for b.Loop() {
				preview.Of(result, 12_000)
			}
		})
	}
	b.Run("json.Valid", func(b *testing.B) {
		b.SetBytes(int64(len(structured)))
		for b.Loop() {
			json.Valid(structured)
		}
	})
}
