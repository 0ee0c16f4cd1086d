package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

const (
	program = "mcp-toolhub"

	// pathVariable is the environment variable that names the configuration file where --config does not.
	pathVariable = "MCP_TOOLHUB_CONFIG"
)

// Find's error wraps errNotFound when there is no configuration file anywhere.
var errNotFound = errors.New("there is no config yet")

// Found is a configuration file that may be used.
type Found struct {
	Path    string
	Project bool // it lies in the working directory, where a stranger may have put it: see Source.Project
}

// Find returns the configuration files in the order in which they come into question: explicit
// (--config) alone, otherwise MCP_TOOLHUB_CONFIG alone, otherwise mcp-toolhub.yaml in workdir and
// config.yaml in the user's configuration directory; .yml, .json and .jsonc are looked for too. A
// path that was named is returned without looking whether it exists: Load says so better. Whoever
// names a file trusts it: on the command line, or in the environment, which no project can write.
func Find(explicit string, env Env, workdir string) ([]Found, error) {
	if explicit != "" {
		return []Found{{Path: explicit}}, nil
	}
	if named := env.value(pathVariable); named != "" {
		return []Found{{Path: named}}, nil
	}
	var all []Found
	var looked []string
	look := func(base string, project bool) {
		looked = append(looked, base+".yaml (.yml, .json, .jsonc)")
		if path := existing(base); path != "" {
			all = append(all, Found{path, project})
		}
	}
	look(filepath.Join(workdir, program), true)
	if dir := env.configDir(runtime.GOOS); dir != "" {
		look(filepath.Join(dir, program, "config"), false)
	}
	if len(all) > 0 {
		return all, nil
	}
	return nil, fmt.Errorf("%w: run mcp-toolhub setup, which takes the servers of your clients, or mcp-toolhub add "+
		"(looked at --config, %s, %s)", errNotFound, pathVariable, strings.Join(looked, ", "))
}

// UserFile returns the config file in the user's configuration directory, or the path where a new
// one belongs; "" where the environment does not tell.
func UserFile(env Env) string {
	dir := env.configDir(runtime.GOOS)
	if dir == "" {
		return ""
	}
	base := filepath.Join(dir, program, "config")
	return cmp.Or(existing(base), base+extensions()[0])
}

// existing is the file base with the first extension that there is; "" where there is none.
func existing(base string) string {
	for _, extension := range extensions() {
		if info, err := os.Stat(base + extension); err == nil && !info.IsDir() {
			return base + extension
		}
	}
	return ""
}

// UserDir returns the directory for the configuration of the user's programs; "" where the environment does not tell.
func UserDir(env Env) string { return env.configDir(runtime.GOOS) }

// ServerID makes a server id of any name, as the hub does where a config has such a name.
func ServerID(name string) string { return normalise(name) }

// extensions are those of configuration files, the first that exists counts.
func extensions() []string { return []string{".yaml", ".yml", ".json", ".jsonc"} }

// IsProject reports whether the file at path is looked for in a working directory.
func IsProject(path string) bool {
	return slices.Contains(extensions(), strings.TrimPrefix(filepath.Base(path), program))
}

// configDir is the directory for the configuration of the user's programs; "" where the environment does not tell.
func (e Env) configDir(goos string) string {
	return e.userDir(goos, "AppData", "XDG_CONFIG_HOME", ".config")
}

// StateDir returns the absolute path of the directory for all that the hub writes: flag (--state-dir), otherwise
// mcp-toolhub in the user's state directory. It creates nothing.
func StateDir(flag string, env Env) (string, error) {
	if flag != "" {
		return absolute(flag), nil
	}
	dir := env.stateDir(runtime.GOOS)
	if dir == "" {
		return "", errors.New("find the state directory: the environment names no home directory; give --state-dir DIR")
	}
	return filepath.Join(dir, program), nil
}

// stateDir is the directory for the state of the user's programs; "" where the environment does not tell.
func (e Env) stateDir(goos string) string {
	return e.userDir(goos, "LocalAppData", "XDG_STATE_HOME", ".local", "state")
}

// userDir is the directory that the variable windows or xdg names, otherwise one in the user's home.
func (e Env) userDir(goos, windows, xdg string, home ...string) string {
	switch goos {
	case "windows":
		return e.value(windows)
	case "darwin", "ios":
		return under(e.homeOn(goos), "Library", "Application Support")
	}
	// "All paths set in these environment variables must be absolute. If an implementation encounters a relative path
	// in any of these variables it should consider the path invalid and ignore it." (XDG Base Directory)
	if dir := e.value(xdg); filepath.IsAbs(dir) {
		return dir
	}
	return under(e.homeOn(goos), home...)
}

func under(home string, elements ...string) string {
	if home == "" {
		return ""
	}
	return filepath.Join(append([]string{home}, elements...)...)
}
