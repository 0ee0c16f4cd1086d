package config

import "github.com/mcp-toolhub/mcp-toolhub/internal/textfile"

// Parse turns data, the content of the file at path, into settings, as Load does of a file.
func Parse(path string, data []byte, env Env, hubTools ...string) (*Settings, error) {
	state, err := StateDir("", env)
	if err != nil {
		return nil, textfile.Faults{{File: path, Position: textfile.At(1, 1), Message: err.Error()}}
	}
	return parse(Source{Path: path, Env: env, HubTools: hubTools}, data, state)
}
