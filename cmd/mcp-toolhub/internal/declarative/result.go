package declarative

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// result is the result of tools/call that the outcome of a command is.
func (d *definition) result(o *command.Outcome, secrets []string) (json.RawMessage, error) {
	if o.Ending != command.Exited || o.ExitCode != 0 {
		return d.failed(o, secrets), nil
	}
	refuse := func(class tool.ErrorClass, code, format string, args ...any) (json.RawMessage, error) {
		return nil, &tool.Failure{Class: class, Code: code, Message: fmt.Sprintf(format, args...) + fmt.Sprintf(
			"; the command has run. Tell the person, who has declared the tool in %s", d.path)}
	}
	if d.output != outputResult {
		return textResult(o.Stdout.Text(secrets)), nil
	}
	if o.Stdout.Truncated() {
		return refuse(tool.ClassResultTooLarge, "stdout_limit",
			"%s printed %d bytes, more than its stdout_limit_bytes "+
				"allows, so that there is no result", d.tool.Name, o.Stdout.Bytes)
	}
	raw, _ := o.Stdout.Raw()
	for _, s := range secrets {
		raw = bytes.ReplaceAll(raw, []byte(s), []byte("[redacted]"))
	}
	result, err := readResult(raw)
	if err != nil {
		return refuse(tool.ClassExecutionFailed, "invalid_tool_output", "%s printed no tool result: %s", d.tool.Name,
			err)
	}
	return result, nil
}

// textResult is the result of a command that prints plain text. Clients pass texts on to models, and
// some of those refuse an empty one.
func textResult(text string) json.RawMessage {
	content := []any{}
	if text != "" {
		content = append(content, textBlock(text))
	}
	return encode(map[string]any{"content": content})
}

// failed is the result of a command that exited with an error: what it wrote to its standard error.
func (d *definition) failed(o *command.Outcome, secrets []string) json.RawMessage {
	stderr := o.Stderr.Text(secrets)
	facts := struct {
		Ending    command.Ending `json:"ending"`
		ExitCode  *int           `json:"exit_code,omitempty"`
		Signal    string         `json:"signal,omitempty"`
		Duration  int64          `json:"duration_ms"`
		Stderr    string         `json:"stderr"`
		Bytes     int64          `json:"stderr_bytes"`
		Truncated bool           `json:"stderr_truncated"`
	}{Ending: o.Ending, Signal: o.Signal, Duration: o.Took.Milliseconds(), Stderr: stderr, Bytes: o.Stderr.Bytes,
		Truncated: o.Stderr.Truncated()}
	text := "the command failed: signal " + o.Signal
	if o.Ending == command.Exited {
		facts.ExitCode = &o.ExitCode
		text = fmt.Sprintf("the command failed: exit code %d", o.ExitCode)
	}
	if stderr != "" {
		text += "\n" + stderr
	}
	return encode(map[string]any{"content": []any{textBlock(text)}, "structuredContent": facts, "isError": true})
}

func textBlock(text string) map[string]any { return map[string]any{"type": "text", "text": text} }

func encode(v any) json.RawMessage {
	raw, _ := rawjson.Encode(v) // cannot fail: nothing but texts, numbers and valid JSON
	return raw
}

// readResult reads the tool result that a command printed: an object with content, a list of
// blocks, or structured_content, and is_error. The protocol's own spelling (structuredContent,
// isError) is as good. What else a tool result may hold says nothing to a client.
func readResult(raw []byte) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if !rawjson.Valid(raw) || !rawjson.IsObject(raw) {
		return nil, fmt.Errorf(`its standard output is no JSON object: it should be {"content": [{"type": "text", "text": ` +
			`"…"}]}`)
	}
	if at := rawjson.NotUTF8(raw); at >= 0 {
		return nil, fmt.Errorf("its standard output is not UTF-8 (byte %d of it): it should print text as UTF-8", at)
	}
	result := make(map[string]any)
	var fault error
	_ = rawjson.Members(raw, func(m rawjson.Member) bool {
		switch m.Name() {
		case "content":
			result["content"], fault = blocks(m.Value)
		case "structured_content", "structuredContent":
			if !rawjson.IsObject(m.Value) && !rawjson.IsNull(m.Value) {
				fault = fmt.Errorf("its %s is no object", m.Name())
			} else if !rawjson.IsNull(m.Value) {
				result["structuredContent"] = json.RawMessage(m.Value)
			}
		case "is_error", "isError":
			switch string(m.Value) {
			case "true":
				result["isError"] = true
			case "false", "null":
			default:
				fault = fmt.Errorf("its %s is neither true nor false", m.Name())
			}
		case "_meta", "metadata":
			if rawjson.IsObject(m.Value) {
				result["_meta"] = json.RawMessage(m.Value)
			}
		}
		return fault == nil
	})
	if fault != nil {
		return nil, fault
	}
	if _, ok := result["content"]; !ok {
		structured, ok := result["structuredContent"].(json.RawMessage)
		if !ok {
			return nil, fmt.Errorf("it has neither content nor structured_content")
		}
		result["content"] = []any{textBlock(string(structured))}
	}
	return rawjson.Line(encode(result))
}

// blocks returns the blocks of a content as clients know them. Those of other kinds become texts.
func blocks(raw []byte) ([]any, error) {
	all := []any{}
	var fault error
	err := rawjson.Elements(raw, func(v []byte) bool {
		name, ok := rawjson.GetString(v, "type")
		if !rawjson.IsObject(v) || !ok {
			fault = fmt.Errorf("a block of its content is no object with a type")
			return false
		}
		switch name {
		case "text":
			if _, ok := rawjson.GetString(v, "text"); !ok {
				fault = fmt.Errorf("a text block of its content has no text")
				return false
			}
			all = append(all, json.RawMessage(v))
		case "image", "audio", "resource", "resource_link":
			all = append(all, json.RawMessage(v))
		default:
			all = append(all, textBlock(strings.TrimSpace(string(contentOf(v)))))
		}
		return true
	})
	if err != nil && fault == nil {
		fault = fmt.Errorf("its content is no list")
	}
	return all, fault
}

// contentOf returns the content of a block of another kind: that of a block of JSON, or the block itself.
func contentOf(block []byte) []byte {
	for _, name := range []string{"json", "data", "value"} {
		if v, ok := rawjson.Get(block, name); ok {
			return v
		}
	}
	return block
}
