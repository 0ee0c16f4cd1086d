package rawjson

import "bytes"

// fewKeys is the number of keys of an object up to which each is compared with all others.
const fewKeys = 24

// Repeated returns the name of a member that occurs twice in one object, anywhere in text, which is valid JSON; or ok false.
func Repeated(text []byte) (name string, ok bool) {
	var keys [][]byte // of all objects that are open, as they are written or decoded
	var open []opened
	isKey := false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			isKey = text[i] == '{'
			open = append(open, opened{object: isKey, from: len(keys)})
		case '}', ']':
			if len(open) == 0 {
				return "", false
			}
			keys = keys[:open[len(open)-1].from]
			open = open[:len(open)-1]
		case ',':
			isKey = len(open) > 0 && open[len(open)-1].object
		case '"':
			end := skipString(text, i)
			if isKey && end-i >= 2 {
				key := text[i+1 : end-1]
				if !plain(key) {
					key = []byte(unquote(key))
				}
				if open[len(open)-1].holds(keys, key) {
					return string(key), true
				}
				keys = append(keys, key)
			}
			isKey = false
			i = end - 1
		}
	}
	return "", false
}

// opened is an object or array that has not ended.
type opened struct {
	object bool
	from   int             // where its keys begin
	many   map[string]bool // all of them, once they are not few any more
}

// holds reports whether the object has the key already, and notes it where there are many.
func (o *opened) holds(keys [][]byte, key []byte) bool {
	own := keys[o.from:]
	if len(own) < fewKeys {
		for _, other := range own {
			if bytes.Equal(other, key) {
				return true
			}
		}
		return false
	}
	if o.many == nil {
		o.many = make(map[string]bool, 2*fewKeys)
		for _, other := range own {
			o.many[string(other)] = true
		}
	}
	found := o.many[string(key)]
	o.many[string(key)] = true
	return found
}
