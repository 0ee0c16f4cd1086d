//go:build !amd64

package rawjson

// skipBlocks returns an index from i on, where the inside of a string begins or goes on, before which that neither ends
// nor is wrong. It goes in blocks of 64 bytes, and stops before one that needs a closer look. The index may be amid the
// digits of an escape, all of which are right then.
func skipBlocks(text []byte, i int) int { return skipWords(text, i) }
