package rawjson

import "golang.org/x/sys/cpu"

// skips are the ways to skip blocks that this processor has.
func skips() map[string]func([]byte, int) int {
	all := map[string]func([]byte, int) int{"words": skipWords}
	if cpu.X86.HasAVX2 {
		all["classified"] = skipClassified
	}
	return all
}
