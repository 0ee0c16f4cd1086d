package secret

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// absolutePath finds absolute paths in a text, with the character before each: all between two
// quotes, or up to what usually ends a path.
var absolutePath = regexp.MustCompile(`"(?:/|[A-Za-z]:\\)[^"\n]+"|(?:^|[\s'` + "`" + `(=\[,])(?:/|[A-Za-z]:\\)[^\s"'` +
	"`" + `()\[\],;:]+`)

// WithoutPaths returns a text of the hub's own with the last name alone of each path of this
// machine, for callers elsewhere. What the caller itself has written, in given, stays.
func WithoutPaths(text, given string) string {
	return absolutePath.ReplaceAllStringFunc(text, func(found string) string {
		path := strings.TrimSuffix(strings.TrimLeft(found, " \t\r\n\f\"'`(=[,"), `"`)
		if strings.Contains(given, path) || !isLocal(path) {
			return found
		}
		return strings.Replace(found, path, "…/"+filepath.Base(path), 1)
	})
}

// isLocal reports whether there is the topmost directory of a path on this machine. Other texts
// begin with a slash, too.
func isLocal(path string) bool {
	if filepath.VolumeName(path) != "" {
		return true
	}
	top, rest, _ := strings.Cut(path[1:], "/")
	_, err := os.Lstat("/" + top)
	return rest != "" && err == nil
}
