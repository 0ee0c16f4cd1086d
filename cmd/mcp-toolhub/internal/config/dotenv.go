package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

var dotenvLine = regexp.MustCompile(`^(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*=[ \t]*(.*)$`)

// envFile reads the file that VS Code and Cursor call envFile: lines of NAME=value, comments with #, values in single
// quotes as they stand, in double quotes with \n, \t, \" and \\.
func (r serverReader) envFile(path shape.Located[string]) map[string]string {
	values := map[string]string{}
	unknown := func(f textfile.Fault) bool { return f.Position == path.Position }
	if !path.OK || r.entry.Value.Disabled || slices.ContainsFunc(r.entry.Value.missing, unknown) {
		return values
	}
	file := r.vars.path(path.Value)
	data, err := readRegular(file, maxSecretBytes)
	if err != nil {
		shape.FaultOf(r.Reader, path, "cannot read the file", readProblem(err).Error())
		return values
	}
	r.note(file, data)
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		m := dotenvLine.FindStringSubmatch(line)
		if m == nil {
			shape.FaultOf(r.Reader, path, fmt.Sprintf("line %d of the file is no NAME=value", i+1),
				"correct or remove that line")
			continue
		}
		value, ok := dotenvValue(m[2])
		if !ok {
			shape.FaultOf(r.Reader, path, fmt.Sprintf("line %d of the file opens a quote and does not close it", i+1),
				"write the value on one line, quotes closed")
			continue
		}
		values[m[1]] = value
	}
	return values
}

func dotenvValue(s string) (string, bool) {
	if s == "" {
		return "", true
	}
	switch s[0] {
	case '\'':
		value, _, closed := strings.Cut(s[1:], "'")
		return value, closed
	case '"':
		var b strings.Builder
		for i := 1; i < len(s); i++ {
			switch {
			case s[i] == '"':
				return b.String(), true
			case s[i] == '\\' && i+1 < len(s):
				i++
				b.WriteString(map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '"': `"`, '\\': `\`}[s[i]])
				if !strings.ContainsRune(`ntr"\`, rune(s[i])) {
					b.WriteString(s[i-1 : i+1])
				}
			default:
				b.WriteByte(s[i])
			}
		}
		return "", false
	}
	if i := strings.Index(s, " #"); i >= 0 {
		s = s[:i]
	}
	return strings.TrimSpace(s), true
}
