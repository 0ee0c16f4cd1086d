package textfile

import "strings"

// maxNear bounds the words that Nearest looks at: a longer one is no slip of the finger, and the
// comparison is quadratic.
const maxNear = 48

// Nearest returns the candidate that word was most likely meant to be, or "". Case, hyphens and underscores do not
// count, so that callMax finds call_max.
func Nearest(word string, candidates []string) string {
	if word == "" || len(word) > maxNear {
		return ""
	}
	best, bestDistance := "", 1+min(3, max(1, len(word)/3))
	for _, c := range candidates {
		if d := Distance(plain(word), plain(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// DidYouMean is the hint for word, or otherwise where no candidate is near.
func DidYouMean(word string, candidates []string, otherwise string) string {
	if n := Nearest(word, candidates); n != "" {
		return `did you mean "` + n + `"?`
	}
	return otherwise
}

func plain(s string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(s))
}

// Distance counts the insertions, deletions, replacements and swaps of neighbours that turn a into b.
func Distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}
