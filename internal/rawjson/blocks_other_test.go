//go:build !amd64

package rawjson

// skips are the ways to skip blocks that there are.
func skips() map[string]func([]byte, int) int {
	return map[string]func([]byte, int) int{"words": skipWords}
}
