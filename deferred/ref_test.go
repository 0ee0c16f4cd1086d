package deferred

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// call is a call of a deferred tool by ann.
func callOf(t *testing.T, s *tool.Surface, name, ref string, loaded tool.Loaded) tool.DeferredCall {
	t.Helper()
	l, ok := s.Resolve(name)
	if !ok {
		t.Fatalf("no tool %q", name)
	}
	return tool.DeferredCall{Invocation: "inv_2", Surface: s, Listed: l, Actor: ann(), SelectionRef: ref, Loaded: loaded}
}

// refusal is what a refused call carries.
func refusal(t *testing.T, err error) (code string, carried notLoaded) {
	t.Helper()
	var f *tool.Failure
	if !errors.As(err, &f) {
		t.Fatalf("not refused: %v", err)
	}
	if f.Class != tool.ClassSchemaNotLoaded || f.Message == "" {
		t.Errorf("refused as %s: %q", f.Class, f.Message)
	}
	if err := json.Unmarshal([]byte(f.Detail), &carried); err != nil {
		t.Fatalf("%v in %q", err, f.Detail)
	}
	return f.ErrorCode(), carried
}

func TestRefs(t *testing.T) {
	t.Parallel()
	clock := &at{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	tools := shop()
	keys := [][]byte{[]byte("the key of today, long"), []byte("the key of yesterday, long")}
	l := newLoader(t, always(), Options{Now: clock.now, Keys: keys}, tools)
	s := l.Surface(surfaceOf("p", tools, nil), tool.Client{})
	mail, shop := tools[0], tools[2]
	good := l.signer().mint(mail, ann().Ref())
	if len(good) != refLength || l.signer().mint(mail, ann().Ref()) != good {
		t.Errorf("refs %q and %q", good, l.signer().mint(mail, ann().Ref()))
	}
	flipped := func(i int) string {
		b, _ := base64.RawURLEncoding.DecodeString(good)
		b[i] ^= 1
		return base64.RawURLEncoding.EncodeToString(b)
	}
	byKey := func(key string) string {
		return newSigner([][]byte{[]byte(key)}, refTTL, clock.now).mint(mail, ann().Ref())
	}
	changed := newTool("mail", "send_message", "", `{"type":"object"}`, "")
	for name, c := range map[string]struct{ ref, code string }{
		"good":                     {good, ""},
		"none":                     {"", codeNotLoaded},
		"of yesterday's key":       {byKey("the key of yesterday, long"), ""},
		"forged: another key":      {byKey("the key of another hub"), codeForeignRef},
		"forged: expiry":           {flipped(3), codeForeignRef},
		"forged: mark":             {flipped(5), codeForeignRef},
		"forged: signature":        {flipped(20), codeForeignRef},
		"forged: no ref at all":    {"please", codeForeignRef},
		"forged: line break in it": {good[:31] + "\n", codeForeignRef},
		"forged: longer":           {good + "AAAA", codeForeignRef},
		"foreign":                  {l.signer().mint(mail, tool.Actor{Name: "bob", Door: "http"}.Ref()), codeForeignRef},
		"foreign: another door":    {l.signer().mint(mail, tool.Actor{Name: "ann", Door: "stdio"}.Ref()), codeForeignRef},
		"swapped":                  {l.signer().mint(shop, ann().Ref()), codeForeignRef},
		"of another schema":        {l.signer().mint(changed, ann().Ref()), codeChanged},
	} {
		records, err := l.Admit(callOf(t, s, "mcp.mail.send_message", c.ref, nil))
		if c.code == "" {
			if err != nil || len(records) > 0 {
				t.Errorf("%s: %v, %d records", name, err, len(records))
			}
			continue
		}
		code, carried := refusal(t, err)
		if code != c.code || carried.Code != c.code || carried.Ref != good || carried.Name != "mcp.mail.send_message" {
			t.Errorf("%s: %s, carrying %+v", name, code, carried)
		}
		checkSchemas(t, records)
		if _, err := l.Admit(callOf(t, s, carried.Name, carried.Ref, nil)); err != nil {
			t.Errorf("%s: what the error carries does not serve: %v", name, err)
		}
	}
	clock.Time = clock.Add(2*refTTL + time.Minute)
	if code, _ := refusal(t, errOf(l.Admit(callOf(t, s, "mcp.mail.send_message", good, nil)))); code != codeExpired {
		t.Errorf("two days later: %s", code)
	}
}

func errOf(_ []tool.Record, err error) error { return err }

// TestRefsOutlive: a ref is good in another process with the same key, and not in one with another.
func TestRefsOutlive(t *testing.T) {
	t.Parallel()
	tools := shop()
	for name, c := range map[string]struct {
		keys [][]byte
		good bool
	}{"the same": {[][]byte{[]byte("k1")}, true}, "rotated": {[][]byte{[]byte("k2"), []byte("k1")}, true},
		"lost": {[][]byte{[]byte("k2")}, false}, "none": {nil, false}} {
		before := newLoader(t, always(), Options{Keys: [][]byte{[]byte("k1")}}, tools)
		ref := before.signer().mint(tools[1], ann().Ref())
		after := newLoader(t, always(), Options{Keys: c.keys}, tools)
		s := after.Surface(surfaceOf("p", tools, nil), tool.Client{})
		if _, err := after.Admit(callOf(t, s, string(tools[1].Name), ref, nil)); (err == nil) != c.good {
			t.Errorf("%s key: %v", name, err)
		}
	}
}

// TestChangedSchema: a tool that changes after its declaration went out is not called, and its new one is said.
func TestChangedSchema(t *testing.T) {
	t.Parallel()
	before := shop()
	l := newLoader(t, always(), Options{}, before)
	ref := l.signer().mint(before[0], ann().Ref())
	loaded := session{before[0].Name: before[0].SchemaDigest}
	after := slices.Clone(before)
	after[0] = newTool("mail", "send_message", "Sends an e-mail to somebody.", `{"type":"object","properties":{"to":{"type":"array","items":{"type":"string"}},"subject":{"type":"string"}},"required":["to","subject"]}`, "")
	l.Update(catalogsOf(after[2:])) // the server goes away and comes back as another one
	l.Update(catalogsOf(after))
	s := l.Surface(surfaceOf("p", after, nil), tool.Client{})
	for name, c := range map[string]tool.DeferredCall{"by ref": callOf(t, s, string(before[0].Name), ref, nil),
		"by session": callOf(t, s, string(before[0].Name), "", loaded)} {
		code, carried := refusal(t, errOf(l.Admit(c)))
		if code != codeChanged || !strings.Contains(string(carried.Declaration), "subject") {
			t.Errorf("%s: %s, %s", name, code, carried.Declaration)
		}
	}
	if _, err := l.Admit(callOf(t, s, string(before[0].Name), "", loaded)); err != nil {
		t.Errorf("the second call of the session: %v", err)
	}
	fresh := newLoader(t, always(), Options{}, after) // knows nothing of before
	older := callOf(t, s, string(before[0].Name), "", session{before[0].Name: "older"})
	if code, _ := refusal(t, errOf(fresh.Admit(older))); code != codeChanged {
		t.Error(code)
	}
}

// TestListedBefore: who was given a tool's declaration by the list goes on calling it by its name when so many tools have come
// that it is deferred, also without a session: there are clients that never list again.
func TestListedBefore(t *testing.T) {
	t.Parallel()
	few, many := shop(), append(shop(), manyTools(500)...)
	name := string(few[0].Name)
	code := func(l *Loader, s *tool.Surface, loaded tool.Loaded) string {
		_, err := l.Admit(callOf(t, s, name, "", loaded))
		var f *tool.Failure
		if err != nil && !errors.As(err, &f) {
			t.Fatal(err)
		}
		if f == nil {
			return ""
		}
		return f.Code
	}
	for what, c := range map[string]struct {
		given  bool
		schema string // that it has by then; "" for the same
		loaded tool.Loaded
		want   string
	}{
		"given":                           {true, "", nil, ""},
		"given to no session":             {true, "", session{}, codeNotLoaded},
		"nobody has listed":               {false, "", nil, codeNotLoaded},
		"given another schema":            {true, `{"type":"object","properties":{"other":{}}}`, nil, codeChanged},
		"given another, and then the new": {true, `{"type":"object","properties":{"other":{}}}`, session{few[0].Name: tool.Digest([]byte(`{"type":"object","properties":{"other":{}}}`))}, ""},
	} {
		l := newLoader(t, Config{}, Options{}, few)
		before := l.Surface(surfaceOf("p", few, nil), tool.Client{})
		if len(before.Deferred) != 0 {
			t.Fatalf("%d tools are deferred at first", len(before.Deferred))
		}
		if c.given {
			before.Give()
		}
		then := slices.Clone(many)
		if c.schema != "" {
			then[0] = newTool(few[0].Server, few[0].Native, few[0].Description, c.schema, "")
		}
		l.Update(catalogsOf(many))
		l.Surface(surfaceOf("p", many, nil), tool.Client{})
		l.Update(catalogsOf(then))
		s := l.Surface(surfaceOf("p", then, nil), tool.Client{})
		if !s.IsDeferred(few[0].Name) {
			t.Fatalf("%s: it is not deferred", what)
		}
		if got := code(l, s, c.loaded); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
		if got := code(l, l.Surface(surfaceOf("q", then, nil), tool.Client{}), nil); got != codeNotLoaded {
			t.Errorf("%s: on another profile: %q", what, got)
		}
	}
}

func TestTyped(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		``:                  "()",
		`{"type":"object"}`: "()",
		`{"properties":{"b":{"type":"integer","default":3},"a":{"type":"string"}},"required":["a"]}`:                                                 "(a: string, b?: integer = 3)",
		`{"properties":{"a":{"type":["string","null"]},"b":{"type":"array","items":{"enum":["x","y"]}}}}`:                                            `(a?: string | null, b?: ("x" | "y")[])`,
		`{"properties":{"a":{"anyOf":[{"type":"number"},{"const":"all"}]},"b":{"type":"object","properties":{"c":{"type":"boolean"}}}, "d": true }}`: `(a?: number | "all", b?: {c?: boolean}, d?: any)`,
		`{"properties":{"a":{"enum":[1,2,3,4,5,6,7,8]}}}`:                                                                                            "(a?: 1 | 2 | 3 | 4 | 5 | 6 | …)",
		`{"properties":{"e\u001b[2J":{"type":"x\u001b"}}}`:                                                                                           "(e?: x)",
	} {
		if got := typed(json.RawMessage(schema)); got != want {
			t.Errorf("%s: %s, want %s", schema, got, want)
		}
	}
}

// TestTypedIsShort: parameters that have as many themselves as a line takes do not make it longer.
func TestTypedIsShort(t *testing.T) {
	t.Parallel()
	schema := `{"type":"string"}`
	for range maxNested + 1 {
		wide := make([]string, maxParameters/2)
		for i := range wide {
			wide[i] = fmt.Sprintf(`"parameter_%d":%s`, i, schema)
		}
		schema = `{"type":"object","properties":{` + strings.Join(wide, ",") + `}}`
	}
	if got := typed(json.RawMessage(schema)); len(got) > maxSignature+20 || !strings.HasSuffix(got, ", …)") {
		t.Errorf("%d bytes: %.200s", len(got), got)
	}
}

func FuzzSchemas(f *testing.F) {
	f.Add(`{"properties":{"a":{"anyOf":[{"type":"number"},{"const":"all"}]}},"required":["a"]}`)
	f.Add(`{"properties":{"a":{"properties":{"a":{"properties":{"a":{"properties":{"a":{}}}}}}}}}`)
	f.Fuzz(func(t *testing.T, a string) {
		if got := typed(json.RawMessage(a)); strings.ContainsAny(got, "\n\x1b") || len(got) > maxSignature+20 {
			t.Errorf("%q", got)
		}
	})
}

func FuzzRef(f *testing.F) {
	s := newSigner([][]byte{[]byte("key")}, time.Hour, time.Now)
	tool1 := newTool("a", "b", "", "", "")
	f.Add(s.mint(tool1, "ann"))
	f.Add(strings.Repeat("A", refLength))
	f.Fuzz(func(t *testing.T, ref string) {
		if v := s.check(ref, tool1, "bob"); v != codeForeignRef {
			t.Errorf("%q is taken from bob: %q", ref, v)
		}
	})
}
