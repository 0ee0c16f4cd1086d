package code

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"
)

// defaultSensitive returns the patterns of the design document and two more. The document writes ~/.ssh; they hold in
// every directory here, because the homes of other accounts, mounted homes and backups keep the same secrets.
func defaultSensitive() []string {
	return append([]string{".ssh", ".gnupg", ".aws", ".config/gcloud", "*.pem", "*.key", ".env", ".env.*"}, processPaths()...)
}

// processPaths hold the hub's own environment, memory and descriptors, and files that block or act when read.
func processPaths() []string { return []string{"/proc", "/sys"} }

// sensitivePaths are globs over whole paths as fold writes them.
type sensitivePaths []string

// newSensitivePaths joins the default patterns and more.
func newSensitivePaths(more []string, home string) (sensitivePaths, error) {
	return compileSensitive(append(defaultSensitive(), more...), home)
}

// compileSensitive makes patterns ready. A pattern without a leading slash or "~/" holds in every directory; what lies below
// a match is sensitive too.
func compileSensitive(patterns []string, home string) (sensitivePaths, error) {
	var s sensitivePaths
	for _, p := range patterns {
		roots := []string{p}
		if rest, ok := strings.CutPrefix(filepath.ToSlash(p), "~/"); ok {
			if home == "" {
				return nil, fmt.Errorf("code: sensitive path %q: the home directory is not known: write the path in full", p)
			}
			roots = []string{escapeGlob(filepath.ToSlash(home)) + "/" + rest}
			if real, err := filepath.EvalSymlinks(home); err == nil {
				roots = append(roots, escapeGlob(filepath.ToSlash(real))+"/"+rest)
			}
		}
		for _, r := range roots {
			glob := strings.TrimRight(fold(r), "/")
			if !strings.HasPrefix(glob, "/") && !hasVolume(glob) {
				glob = "**/" + glob
			}
			glob = strings.TrimPrefix(glob, "/") + "/**" // in doublestar "a/**" holds for "a" as well
			if !doublestar.ValidatePattern(glob) || strings.Trim(p, "/ ") == "" {
				return nil, fmt.Errorf("code: sensitive path %q is not a glob: close its brackets, or escape them with a backslash", p)
			}
			s = append(s, glob)
		}
	}
	return s, nil
}

// globsOf returns globs for directories: each as it is named, and as it is really called.
func globsOf(dirs []string) []string {
	var globs []string
	for _, dir := range dirs {
		globs = append(globs, escapeGlob(filepath.ToSlash(dir)))
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
			globs = append(globs, escapeGlob(filepath.ToSlash(real)))
		}
	}
	return globs
}

func hasVolume(slashed string) bool { return len(slashed) > 1 && slashed[1] == ':' }

// contain reports whether path, absolute and clean, is sensitive.
func (s sensitivePaths) contain(path string) bool {
	path = strings.TrimPrefix(foldPath(path), "/")
	return slices.ContainsFunc(s, func(glob string) bool { return doublestar.MatchUnvalidated(glob, path) })
}

// fold makes names equal that some file system takes for one: letter case by Unicode folding, and characters that HFS+
// ignores in names.
func fold(s string) string {
	s = strings.ToLower(strings.ToUpper(s))
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, s)
}

// foldPath folds path, and what Windows ignores in each name: trailing dots and spaces, and the name of a stream.
func foldPath(path string) string {
	names := strings.Split(filepath.ToSlash(fold(path)), "/")
	for i, name := range names {
		if runtime.GOOS == "windows" && i > 0 {
			name, _, _ = strings.Cut(name, ":")
		}
		if trimmed := strings.TrimRight(name, ". "); trimmed != "" {
			name = trimmed
		}
		names[i] = name
	}
	return strings.Join(names, "/")
}

// escapeGlob returns the glob that stands for s alone.
func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`, `}`, `\}`).Replace(s)
}
