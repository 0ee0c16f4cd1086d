package sensitive

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// absolutePath finds absolute paths in a text: all between two quotes, or up to what usually ends a path.
var absolutePath = regexp.MustCompile(`"((?:/|[A-Za-z]:\\)[^"\n]+)"|(?:^|[\s'` + "`" + `(=\[,])((?:/|[A-Za-z]:\\)[^\s"'` + "`" + `()\[\],;:]+)`)

// WithoutPaths returns a text of the hub's own with the last name alone of each path of this
// machine, for callers elsewhere. What the caller itself has written, in given, stays.
func WithoutPaths(text, given string) string {
	var out strings.Builder
	done := 0
	for _, m := range absolutePath.FindAllStringSubmatchIndex(text, -1) {
		from, to := max(m[2], m[4]), max(m[3], m[5])
		path := text[from:to]
		if strings.Contains(given, path) || !isLocal(path) {
			continue
		}
		out.WriteString(text[done:from] + "…/" + filepath.Base(path))
		done = to
	}
	return out.String() + text[done:]
}

// isLocal reports whether there is the topmost directory of a path on this machine. Other texts
// begin with a slash, too.
func isLocal(path string) bool {
	path = filepath.ToSlash(path)
	top := strings.IndexByte(path[1:], '/') + 1
	if filepath.VolumeName(path) != "" {
		return true
	}
	if top == 0 || top == len(path)-1 {
		return false
	}
	_, err := os.Lstat(path[:top])
	return err == nil
}
