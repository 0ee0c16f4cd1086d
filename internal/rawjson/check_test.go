package rawjson

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// checkGrowing holds a Check of text, which comes in steps of so many bytes, against Parse. Every other step it is elsewhere
// in memory.
func checkGrowing(t *testing.T, text []byte, steps ...int) {
	t.Helper()
	c := NewCheck("a")
	at, here := 0, bytes.Clone(text)
	type span struct{ from, to int }
	var values []span
	for n := 0; at < len(text); n++ {
		at = min(at+max(steps[n%len(steps)], 1), len(text))
		if n%2 == 1 {
			for i := range here {
				here[i] = '?' // nothing may be read here any more
			}
			here = bytes.Clone(text)
		}
		c.Add(here[:at])
		if from, to := c.Value(); to > 0 {
			values = append(values, span{from, to})
			if from > to || to > at {
				t.Fatalf("%.200q: the value is at %d to %d of %d", text, from, to, at)
			}
		}
		if id, ok := c.Get("b"); ok && !bytes.Contains(text, id) {
			t.Fatalf("%.200q: member b is %q", text, id)
		}
	}
	o, inner, ok := c.Finish(text)
	wantO, wantInner, wantOK := Parse(text, "a")
	if ok != wantOK || !sameObject(o, wantO) || !sameObject(inner, wantInner) {
		t.Fatalf("%.200q in steps of %d: %+v, %+v, %v, want %+v, %+v, %v", text, steps, o, inner, ok, wantO, wantInner, wantOK)
	}
	if !ok {
		return
	}
	checkKnown(t, o)
	checkKnown(t, inner)
	for _, v := range values {
		inside := false
		for _, m := range o.Members() {
			inside = inside || string(m.Key) == "a" && m.valueAt == v.from && v.to <= m.end
		}
		if !inside {
			t.Fatalf("%.200q in steps of %d: %q is part of no member a", text, steps, text[v.from:v.to])
		}
	}
}

func sameObject(a, b Object) bool {
	return bytes.Equal(a.text, b.text) && len(a.members) == len(b.members) &&
		(len(a.members) == 0 || reflect.DeepEqual(a.members, b.members))
}

// growingTexts are texts that end within each token, and go on.
func growingTexts() []string {
	return append(objectTexts(),
		`{"jsonrpc":"2.0","b":"toolhub-1","a":{"content":[{"type":"text","text":"a\n\"\u00e9\\"}],"n":-12.50e+10,"t":true}, "c":[{}, [ ] ,""]}`,
		` { "a" : 123456 , "b" : 1 , "a" : { "b" : "x" , "a" : {} } } `, `{"a":[1,22,[333,[4444]]],"b":{"a":{"b":false}},"a":"long string"}`,
		`{"a":{"b":1,"b":2},"a":{"c":3}`, `{"a":{"b":"c"},"a":1}x`, `{"a":{"b":"\ud83d\ude00"},"d":nulll}`, `[{"a":{"b":1}},{"a":1}]`, `12345`,
		`{"k":{"l":{"m":{"a":"x"}}},"a":{"k":[[[[[[[[1]]]]]]]]}}`, `{"a":{"b":"x`+"\n"+`y"}}`, `{"a":{"b":"x\qy"}}`, `{"a":{"b":"\u12G4"}}`)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, text := range append(growingTexts(), validTexts()...) {
		for _, steps := range [][]int{{1}, {3}, {1, 40}, {1 << 20}} {
			checkGrowing(t, []byte(text), steps...)
		}
	}
	for _, text := range growingTexts() {
		for i := range len(text) {
			checkGrowing(t, []byte(text), i, len(text))
		}
	}
}

// TestCheckIsLinear: a text that gives a check no place to pause is not gone through again and again.
func TestCheckIsLinear(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	for name, text := range map[string]string{
		"number":     `{"a":` + strings.Repeat("1", size),
		"space":      `{"a":` + strings.Repeat(" ", size),
		"keys":       strings.Repeat(`{"`+strings.Repeat("k", size/MaxDepth)+`":`, MaxDepth),
		"key":        `{"` + strings.Repeat("k", size),
		"wrong":      `{"a":"` + "\n" + strings.Repeat("k", size),
		"wrong late": `{"a":"` + strings.Repeat("k", size/2) + "\n" + strings.Repeat("k", size/2),
	} {
		c, start, text := NewCheck("a"), time.Now(), []byte(text)
		for at := 0; at < len(text); at += 1 << 10 {
			c.Add(text[:at])
		}
		if took := time.Since(start); took > 2*time.Minute {
			t.Errorf("%s took %s", name, took)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for i, text := range growingTexts() {
		f.Add([]byte(text), uint(1+i%5), uint(1+i%11))
	}
	f.Fuzz(func(t *testing.T, text []byte, a, b uint) {
		steps := []int{int(a % 1000), int(b % 1000)}
		checkGrowing(t, text, steps...)
		checkGrowing(t, fmt.Appendf(nil, `{"b":"id","a":{"c":%s},"d":[]}`, text), steps...)
		checkGrowing(t, fmt.Appendf(nil, `{"b":"id","a":{"c":["%s"]},"d":[]}`, text), steps...)
	})
}
