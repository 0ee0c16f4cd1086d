package hidden

import "strings"

// Summary returns the first line of text as Escape writes it, at most limit characters long.
func Summary(text string, limit int) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	runes := []rune(strings.ReplaceAll(Escape(line), "\t", " "))
	if len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return string(runes)
}
