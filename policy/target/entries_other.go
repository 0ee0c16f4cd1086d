//go:build !linux

package target

// eachEntry gives visit the names in dir, at most limit of them.
func eachEntry(dir string, limit int, visit func(name []byte)) {
	for i, name := range entries(dir) {
		if i == limit {
			return
		}
		visit([]byte(name))
	}
}
