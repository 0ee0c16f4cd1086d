package code

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Native names of the tools.
const (
	readFile = "read_file"
	listDir  = "list_dir"
	search   = "search"
)

// declared is the declaration of one tool, with what it is: readonly or write.
type declared struct{ text, tag string }

// newCatalog parses the declarations below, and more. Their schemas keep to the subset that the
// design document allows: no $ref, no oneOf, no conditionals.
func newCatalog(more ...declared) (tool.Catalog, error) {
	c := tool.Catalog{Server: Name, Source: Name, Title: "Project files, read-only",
		Tags: []string{"code", "filesystem", "readonly"},
		Instructions: "Reads, lists and searches the files of the project. Paths are relative to the project, " +
			"or absolute."}
	if len(more) > 0 {
		c.Title, c.Tags = "Project files", []string{"code", "filesystem"}
	}
	all := []declared{{readFileDeclaration, "readonly"}, {listDirDeclaration, "readonly"},
		{searchDeclaration, "readonly"}}
	for _, one := range append(all, more...) {
		t, err := parseDeclaration(one.text)
		if err != nil {
			return c, err
		}
		t.Tags = []string{one.tag, "filesystem", "code"}
		c.Tools = append(c.Tools, t)
	}
	return c, nil
}

// parseDeclaration returns the tool that a declaration declares, without tags.
func parseDeclaration(text string) (*tool.Tool, error) {
	var compact bytes.Buffer // a declaration travels on one line of stdio
	if err := json.Compact(&compact, []byte(text)); err != nil {
		return nil, fmt.Errorf("code: declaration: %w", err)
	}
	d := struct {
		Name, Title, Description  string
		InputSchema, OutputSchema json.RawMessage
	}{}
	if err := json.Unmarshal(compact.Bytes(), &d); err != nil {
		return nil, fmt.Errorf("code: declaration: %w", err)
	}
	return &tool.Tool{
		Name: tool.Name(Name + "." + d.Name), Server: Name, Native: d.Name, Declaration: compact.Bytes(),
		InputSchema: d.InputSchema, OutputSchema: d.OutputSchema, SchemaDigest: tool.Digest(d.InputSchema),
		OutputDigest: tool.Digest(d.OutputSchema), Title: d.Title, Description: d.Description,
	}, nil
}

const readFileDeclaration = `{
	"name": "read_file",
	"title": "Read file",
	"description": "Reads lines of a text file. Returns up to max_lines lines from start_line on; where more follow, truncated is true and next_start_line says where to go on. Lines over 4096 bytes are cut and listed in truncated_lines. Binary files are described, not shown. A sensitive path (keys, credentials, .env) takes a person's permission.",
	"inputSchema": {
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"type": "object",
		"properties": {
			"path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "The file: relative to the project, or absolute."},
			"start_line": {"type": "integer", "minimum": 1, "maximum": 2147483647, "default": 1, "description": "The first line to return, counted from 1."},
			"max_lines": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 200, "description": "How many lines to return at most."}
		},
		"required": ["path"],
		"additionalProperties": false
	},
	"outputSchema": {
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"type": "object",
		"properties": {
			"path": {"type": "string", "description": "The file, relative to the project where it lies inside."},
			"binary": {"type": "boolean", "description": "Whether the file is binary; then there is no text."},
			"size_bytes": {"type": "integer", "minimum": 0},
			"mime_type": {"type": "string", "description": "Of a binary file, guessed from its beginning."},
			"error_code": {"type": "string", "enum": ["binary_file"]},
			"start_line": {"type": "integer", "minimum": 1},
			"end_line": {"type": "integer", "minimum": 0, "description": "The last line returned; 0 for an empty file."},
			"total_lines": {"type": "integer", "minimum": 0, "description": "Lines of the file, where its end was reached."},
			"truncated": {"type": "boolean", "description": "Whether more lines follow."},
			"next_start_line": {"type": "integer", "minimum": 2},
			"truncated_lines": {"type": "array", "items": {"type": "integer", "minimum": 1}, "description": "Numbers of the lines that were cut to 4096 bytes."},
			"encoding": {"type": "string", "enum": ["utf-8", "utf-8-bom", "utf-8-lossy"], "description": "utf-8-lossy: bytes that are not UTF-8 are shown as U+FFFD."},
			"text": {"type": "string", "description": "The lines as they stand in the file, line endings included."}
		},
		"required": ["path", "binary", "size_bytes", "truncated"],
		"additionalProperties": false
	},
	"annotations": {"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false}
}`

const listDirDeclaration = `{
	"name": "list_dir",
	"title": "List directory",
	"description": "Lists a directory, hidden entries included, sorted by name. With recursive, what lies deeper comes later; symbolic links, .git and sensitive directories are not entered. Where there are more than limit entries, truncated is true.",
	"inputSchema": {
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"type": "object",
		"properties": {
			"path": {"type": "string", "minLength": 1, "maxLength": 4096, "default": ".", "description": "The directory: relative to the project, or absolute."},
			"recursive": {"type": "boolean", "default": false, "description": "Whether to list the directories below as well."},
			"limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 200, "description": "How many entries to return at most."}
		},
		"additionalProperties": false
	},
	"outputSchema": {
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"type": "object",
		"properties": {
			"path": {"type": "string", "description": "The directory, relative to the project where it lies inside."},
			"recursive": {"type": "boolean"},
			"entries": {
				"type": "array",
				"items": {
					"type": "object",
					"properties": {
						"path": {"type": "string", "description": "Relative to the listed directory."},
						"type": {"type": "string", "enum": ["file", "directory", "symlink", "other"]},
						"size_bytes": {"type": "integer", "minimum": 0, "description": "Of files."},
						"target": {"type": "string", "description": "Of symbolic links."},
						"note": {"type": "string", "enum": ["sensitive", "unreadable", "git_internal"], "description": "Why it was not looked into."}
					},
					"required": ["path", "type"],
					"additionalProperties": false
				}
			},
			"truncated": {"type": "boolean", "description": "Whether there are more entries."}
		},
		"required": ["path", "recursive", "entries", "truncated"],
		"additionalProperties": false
	},
	"annotations": {"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false}
}`

const searchDeclaration = `{
	"name": "search",
	"title": "Search files",
	"description": "Searches text files line by line with a regular expression, as ripgrep does: files named in .gitignore, hidden files, binary files and symbolic links are left out, unless path or glob names them. Sensitive files are left out; searching one that path names takes a person's permission. Returns matching lines with path, line and column; truncated says whether there was more.",
	"inputSchema": {
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"type": "object",
		"properties": {
			"query": {"type": "string", "minLength": 1, "maxLength": 1024, "description": "Regular expression in RE2 syntax, matched within a line. (?i) at its start ignores case; escape special characters to search for them."},
			"path": {"type": "string", "minLength": 1, "maxLength": 4096, "default": ".", "description": "The file or directory to search: relative to the project, or absolute."},
			"glob": {"type": "string", "minLength": 1, "maxLength": 256, "description": "Only files that match, for instance *.go, src/**/*.ts or *.{js,ts}; with a leading ! only others. Relative to path or to the project."},
			"limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100, "description": "How many matching lines to return at most."}
		},
		"required": ["query"],
		"additionalProperties": false
	},
	"outputSchema": {
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"type": "object",
		"properties": {
			"query": {"type": "string"},
			"path": {"type": "string", "description": "What was searched, relative to the project where it lies inside."},
			"glob": {"type": "string"},
			"matches": {
				"type": "array",
				"items": {
					"type": "object",
					"properties": {
						"path": {"type": "string", "description": "Relative to the project where it lies inside."},
						"line": {"type": "integer", "minimum": 1},
						"column": {"type": "integer", "minimum": 1, "description": "Of the line's first match, in bytes."},
						"text": {"type": "string", "description": "The line, or 512 bytes of it around the match."},
						"cut": {"type": "boolean", "description": "Whether text is a part of the line."}
					},
					"required": ["path", "line", "column", "text"],
					"additionalProperties": false
				}
			},
			"files_searched": {"type": "integer", "minimum": 0},
			"bytes_searched": {"type": "integer", "minimum": 0},
			"truncated": {"type": "boolean", "description": "Whether the search ended before all was searched."},
			"truncated_by": {"type": "string", "enum": ["limit", "bytes", "time", "entries"], "description": "The bound that ended it."},
			"long_lines": {"type": "integer", "minimum": 0, "description": "Lines so long that only their first part was searched."},
			"skipped": {
				"type": "object",
				"properties": {
					"sensitive": {"type": "integer", "minimum": 0},
					"binary": {"type": "integer", "minimum": 0},
					"unreadable": {"type": "integer", "minimum": 0}
				},
				"required": ["sensitive", "binary", "unreadable"],
				"additionalProperties": false
			}
		},
		"required": ["query", "path", "matches", "files_searched", "bytes_searched", "truncated", "skipped"],
		"additionalProperties": false
	},
	"annotations": {"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false}
}`
