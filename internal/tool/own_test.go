package tool

import "testing"

func TestWithoutOwn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"toolhub" : 1}`:                                          `{"toolhub" : 1}`,
		`{"toolhub/a":1, "toolhub/b":2}`:                           `{}`,
		`{"b":2 , "toolhub/a":1,"k\u0041":3}`:                      `{"b":2 ,"k\u0041":3}`,
		`{"b":[1, {"toolhub/a":1},{"c":{"tool\u0068ub\/d":1}}]}`:   `{"b":[1, {},{"c":{}}]}`,
		`{"structuredContent":{"toolhub/a":1},"\u0074oolhub/a":1}`: `{"structuredContent":{"toolhub/a":1}}`,
		`[[[[[[[[{"toolhub/a":1}]]]]]]]]`:                          `[[[[[[[[{"toolhub/a":1}]]]]]]]]`,
		`{"text":"toolhub/"}`:                                      `{"text":"toolhub/"}`,
	} {
		if got := string(WithoutOwn([]byte(text))); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}
