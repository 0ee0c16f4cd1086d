package rawjson

// Map returns an array with change of each element of array, in its place.
func Map(array []byte, change func(element []byte) []byte) ([]byte, error) {
	out := []byte{'['}
	err := Elements(array, func(element []byte) bool {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, change(element)...)
		return true
	})
	return append(out, ']'), err
}
