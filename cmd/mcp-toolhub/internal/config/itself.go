package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// startsItself reports whether the server is a hub that serves this very file: it would start
// itself without end. What is started through another program is not seen here; package guard then
// refuses it when it runs.
func (r serverReader) startsItself(c *upstream.ServerConfig) bool {
	if strings.TrimSuffix(filepath.Base(c.Command), ".exe") != program || !slices.Contains(c.Args, "serve") {
		return false
	}
	own, err := os.Stat(r.File)
	if err != nil {
		return false
	}
	dir := absolute(c.Dir)
	found, _ := Find(configFlag(c.Args), r.childLookup(c.Env), dir) // none found: it will not start
	return slices.ContainsFunc(found, func(f Found) bool {
		path := f.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		info, err := os.Stat(path)
		return err == nil && os.SameFile(info, own)
	})
}

// configFlag is the value of --config among the arguments of a hub.
func configFlag(args []string) string {
	for i, arg := range args {
		for _, name := range []string{"--config", "-c"} {
			if value, ok := strings.CutPrefix(arg, name+"="); ok {
				return value
			}
			if arg == name && i+1 < len(args) {
				return args[i+1]
			}
		}
	}
	return ""
}

// childLookup is the environment of a child as far as it tells where configs are. A child does not
// inherit the variable that names one.
func (r serverReader) childLookup(set []string) Env {
	return func(name string) (string, bool) {
		for _, pair := range set {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value, true
			}
		}
		if name == pathVariable {
			return "", false
		}
		return r.vars.env.lookup(name)
	}
}
