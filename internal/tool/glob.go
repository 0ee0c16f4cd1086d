package tool

import "strings"

// MatchGlob reports whether the pattern of a profile matches all of name: * is any run of characters, ? is one. It takes time in
// proportion to the product of the lengths at worst, so no pattern can stall the hub.
func MatchGlob(pattern, name string) bool {
	if !strings.ContainsAny(pattern, "*?") {
		return pattern == name
	}
	p, n := []rune(pattern), []rune(name)
	i, j := 0, 0
	star, resume := -1, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == '*':
			star, resume = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i++
			j++
		case star >= 0:
			resume++
			i, j = star+1, resume
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
