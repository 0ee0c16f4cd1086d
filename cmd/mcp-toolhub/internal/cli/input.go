package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// readArguments reads the arguments of a call from a flag: a JSON object, or @FILE.
func (a *app) readArguments(text string) (json.RawMessage, error) {
	data := []byte(text)
	if file, ok := strings.CutPrefix(text, "@"); ok {
		var err error
		if file == "-" {
			data, err = io.ReadAll(a.std.in)
		} else {
			data, err = os.ReadFile(file)
		}
		if err != nil {
			return nil, fmt.Errorf("read arguments: %w", err)
		}
	}
	if !rawjson.Valid(data) || !rawjson.IsObject(data) {
		return nil, exitUsage.errorf(`arguments must be a JSON object, for instance --args '{"path": "README.md"}'`)
	}
	if at := rawjson.NotUTF8(data); at >= 0 {
		return nil, exitUsage.errorf("arguments must be UTF-8: byte %d is not", at)
	}
	return bytes.TrimSpace(data), nil
}
