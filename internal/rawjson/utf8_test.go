package rawjson

import (
	"strings"
	"testing"
)

func TestNotUTF8SaysWhere(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": -1, "plain": -1, "Straße 日本 🙂 \ufffd": -1, "\xff": 0, "a\xc3": 1, "ab\xc3(": 2, "日\xed\xa0\x80": 3, "\xef\xbf\xbd\xf5": 3,
		`a lone surrogate that is escaped: \ud800`: -1, strings.Repeat("ü", 500) + "\x80" + strings.Repeat("z", 100): 1000,
	} {
		if got := NotUTF8([]byte(text)); got != want {
			t.Errorf("%.40q: %d, want %d", text, got, want)
		}
	}
}
