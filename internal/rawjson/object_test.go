package rawjson

import (
	"bytes"
	"encoding/json"
	"testing"
)

// objectTexts are objects around each rule of reading and changing members.
func objectTexts() []string {
	return []string{
		`{}`, ` { } `, `{"a":1}`, `{"a":1,"b":2}`, `{"b":2,"a":1}`, `{ "b" : 2 , "a" : 1 , "c" : 3 } `, `{"a":1,"a":2}`,
		`{"a":1,"b":2,"a":3,"b":4}`, `{"b":1,"a":2,"c":3,"a":4,"a":5}`, `{"\u0061":1,"b":{"a":2}}`, `{"x":"\\\"}","a":[{"a":1}],"b":{}}`,
		"{\n\t\"a\":\r\n1,\n\"b\":[]\n}\n", `{"x":{"a":{}},"y":[[],{"b":1}],"z":"a"}`, `{"a":{"b":[1,2,{"c":"d"}]},"e":-1.5e3,"f":null}`,
		"{\n\"b\":\r[],\"a\": {\"b\":[{}]}\n}", "{\"a\":{\"b\":\n1}}", "{\"a\":{\"b\":1\r}}",
	}
}

// checkObject holds Object against the functions on texts.
func checkObject(t *testing.T, text []byte) {
	t.Helper()
	o, err := ReadObject(text)
	if !Valid(text) {
		return
	}
	if err != nil {
		if o.Text() != nil || o.Members() != nil || len(o.With()) != 0 || IsObject(text) {
			t.Fatalf("ReadObject(%q) = %+v, %v", text, o, err)
		}
		return
	}
	for _, name := range []string{"a", "b", "absent"} {
		got, ok := o.Get(name)
		want, exists := Get(text, name)
		if ok != exists || !bytes.Equal(got, want) {
			t.Fatalf("Get %q of %q = %q, %v", name, text, got, ok)
		}
	}
	for _, changes := range [][]Change{
		nil, {{"a", []byte(`[7]`)}}, {{"a", nil}}, {{"a", nil}, {"b", []byte("{}")}}, {{"b", []byte("0")}, {"a", []byte("1")}},
		{{"a", nil}, {"b", nil}}, {{"c", []byte("3")}, {"d", []byte("4")}, {"a", nil}},
	} {
		want := text
		for _, c := range changes {
			if c.Value == nil {
				want, _, err = Delete(want, c.Name)
			} else {
				want, err = Set(want, c.Name, c.Value)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		got := bytes.Join(o.With(changes...), nil)
		if len(changes) < 2 && !bytes.Equal(got, want) || !bytes.Equal(compact(t, got), compact(t, want)) {
			t.Fatalf("%q with %q = %q, want %q", text, changes, got, want)
		}
	}
}

func compact(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return b.Bytes()
}

func TestObject(t *testing.T) {
	t.Parallel()
	for _, text := range append(objectTexts(), validTexts()...) {
		checkObject(t, []byte(text))
	}
	if _, err := ReadObject([]byte(`{"a":`)); err == nil {
		t.Error("ReadObject takes an object that does not end")
	}
}

func FuzzObject(f *testing.F) {
	for _, text := range objectTexts() {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		checkObject(t, text)
		checkObject(t, append(append([]byte(`{"b":0, "a":`), text...), `,"c":[]}`...))
	})
}
