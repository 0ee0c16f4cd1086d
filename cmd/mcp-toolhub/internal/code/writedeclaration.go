package code

// Native names of the tools that write.
const (
	writeFile = "write_file"
	editFile  = "edit_file"
)

// Neither has a destructiveHint: it is true where it is left out, and what they replace has been shown or asked for.

const writeFileDeclaration = `{
	"name": "write_file",
	"title": "Write file",
	"description": "Creates a text file in UTF-8 with the given content. A file that is there already is left alone and path_conflict returned, unless overwrite is true: then its whole content is replaced, while its mode, byte order mark and line endings are kept. Returns what has changed. To change a part of a file use edit_file.",
	"inputSchema": {
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"type": "object",
		"properties": {
			"path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "The file: relative to the project, or absolute."},
			"content": {"type": "string", "maxLength": 4194304, "description": "The whole text of the file."},
			"create_dirs": {"type": "boolean", "default": true, "description": "Whether to create the directories that are missing."},
			"overwrite": {"type": "boolean", "default": false, "description": "Whether to replace a file that is there."}
		},
		"required": ["path", "content"],
		"additionalProperties": false
	},
	"outputSchema": ` + writtenSchema + `,
	"annotations": {"readOnlyHint": false, "idempotentHint": false, "openWorldHint": false}
}`

const editFileDeclaration = `{
	"name": "edit_file",
	"title": "Edit file",
	"description": "Changes a text file: either by edits, which replace exact texts, or by a unified_diff of this one file. Everything is applied or nothing. Each old text must occur exactly once in the file as it is now, unless replace_all is true; edits must not overlap. Every hunk of a diff must fit exactly at the line that it names. Where all lines end in CRLF, they still do. Returns what has changed.",
	"inputSchema": {
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"type": "object",
		"properties": {
			"path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "The file: relative to the project, or absolute."},
			"edits": {
				"type": "array",
				"minItems": 1,
				"maxItems": 200,
				"description": "Replacements, all of them of the text as it is now. Not together with unified_diff.",
				"items": {
					"type": "object",
					"properties": {
						"old": {"type": "string", "maxLength": 1048576, "description": "The text to replace, exactly as it stands in the file. Empty only for a file that is empty or missing."},
						"new": {"type": "string", "maxLength": 1048576, "description": "What to put in its place."},
						"replace_all": {"type": "boolean", "default": false, "description": "Whether to replace every occurrence."}
					},
					"required": ["old", "new"],
					"additionalProperties": false
				}
			},
			"unified_diff": {"type": "string", "minLength": 1, "maxLength": 4194304, "description": "A unified diff of this file, with @@ lines and context. No renaming, deleting or binary diff. Not together with edits."},
			"create_if_missing": {"type": "boolean", "default": false, "description": "Whether to create the file where it is missing; its directory must be there."}
		},
		"required": ["path"],
		"additionalProperties": false
	},
	"outputSchema": ` + writtenSchema + `,
	"annotations": {"readOnlyHint": false, "idempotentHint": false, "openWorldHint": false}
}`

const writtenSchema = `{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"type": "object",
		"properties": {
			"path": {"type": "string", "description": "The file, relative to the project where it lies inside, with links followed."},
			"created": {"type": "boolean", "description": "Whether the file is new."},
			"changed": {"type": "boolean", "description": "Whether anything was written."},
			"size_bytes": {"type": "integer", "minimum": 0},
			"total_lines": {"type": "integer", "minimum": 0},
			"encoding": {"type": "string", "enum": ["utf-8", "utf-8-bom"]},
			"line_endings": {"type": "string", "enum": ["none", "lf", "crlf", "mixed"]},
			"added_lines": {"type": "integer", "minimum": 0},
			"removed_lines": {"type": "integer", "minimum": 0},
			"replacements": {"type": "integer", "minimum": 1, "description": "Places that edits have replaced."},
			"hunks": {"type": "integer", "minimum": 1, "description": "Hunks of the diff."},
			"created_dirs": {"type": "boolean", "description": "Whether directories were created."},
			"content": {
				"type": "array",
				"description": "The changed parts, with three lines around each.",
				"items": {
					"type": "object",
					"properties": {
						"type": {"type": "string", "enum": ["diff"]},
						"path": {"type": "string", "description": "Absolute."},
						"oldText": {"description": "The text before; null for a new file."},
						"newText": {"type": "string"}
					},
					"required": ["type", "path", "oldText", "newText"],
					"additionalProperties": false
				}
			},
			"content_truncated": {"type": "boolean", "description": "Whether content shows a part of the changes only."},
			"locations": {
				"type": "array",
				"items": {
					"type": "object",
					"properties": {
						"path": {"type": "string", "description": "Absolute."},
						"line": {"type": "integer", "minimum": 1, "description": "The first changed line."}
					},
					"required": ["path", "line"],
					"additionalProperties": false
				}
			},
			"notes": {"type": "array", "items": {"type": "string", "enum": ["hard_links_keep_old_text", "was_binary"]}}
		},
		"required": ["path", "created", "changed", "size_bytes", "total_lines", "encoding", "line_endings", "added_lines", "removed_lines", "content", "content_truncated", "locations"],
		"additionalProperties": false
	}`
