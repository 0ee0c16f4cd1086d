package rawjson

import "slices"

// Repeated returns the name of a member that occurs twice in one object, anywhere in text, which is
// valid JSON; or ok false. Names are the same where compare, which orders them, says 0.
func Repeated(text []byte, compare func(a, b []byte) int) (name string, ok bool) {
	var fewKeys [16][]byte
	var fewOpen [8]int
	keys := fewKeys[:0] // of all objects that are open, as they are written or decoded
	open := fewOpen[:0] // where the keys of each object begin; -1 for an array
	isKey := false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			open, isKey = append(open, len(keys)), true
		case '[':
			open, isKey = append(open, -1), false
		case ']', '}':
			if len(open) == 0 {
				return "", false
			}
			if from := open[len(open)-1]; from >= 0 {
				own := keys[from:]
				slices.SortFunc(own, compare)
				for n := 1; n < len(own); n++ {
					if compare(own[n-1], own[n]) == 0 {
						return string(own[n]), true
					}
				}
				keys = keys[:from]
			}
			open, isKey = open[:len(open)-1], false
		case ',':
			isKey = len(open) > 0 && open[len(open)-1] >= 0
		case '"':
			end := SkipString(text, i)
			if isKey && end-i >= 2 {
				keys = append(keys, Member{Key: text[i+1 : end-1]}.Decoded())
			}
			isKey = false
			i = end - 1
		}
	}
	return "", false
}
