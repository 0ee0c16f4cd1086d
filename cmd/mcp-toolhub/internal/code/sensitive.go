package code

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// defaultSensitive returns the patterns of the design document and two more. The document writes ~/.ssh; they hold in
// every directory here, because the homes of other accounts, mounted homes and backups keep the same secrets.
func defaultSensitive() []string {
	return append([]string{".ssh", ".gnupg", ".aws", ".config/gcloud", "*.pem", "*.key", ".env", ".env.*"},
		processPaths()...)
}

// processPaths hold the hub's own environment, memory and descriptors, and files that block or act when read.
func processPaths() []string { return []string{"/proc", "/sys"} }

// newSensitivePaths joins the default patterns and more.
func newSensitivePaths(more []string, home string) (target.Globs, error) {
	return compileSensitive(append(defaultSensitive(), more...), home)
}

// compileSensitive makes patterns ready. "~/" at the beginning of one stands for home.
func compileSensitive(patterns []string, home string) (target.Globs, error) {
	var all []string
	for _, p := range patterns {
		if strings.Trim(p, "/ ") == "" || !doublestar.ValidatePattern(filepath.ToSlash(p)) {
			return nil,
				fmt.Errorf("code: sensitive path %q is not a glob: close its brackets, or escape them with a backslash",
					p)
		}
		rest, ok := strings.CutPrefix(filepath.ToSlash(p), "~/")
		switch {
		case !ok:
			all = append(all, p)
			continue
		case home == "":
			return nil, fmt.Errorf("code: sensitive path %q: the home directory is not known: write the path in full",
				p)
		}
		for _, at := range target.Literal(home) {
			all = append(all, at+"/"+rest)
		}
	}
	return target.NewGlobs(all...), nil
}
