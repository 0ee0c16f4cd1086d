package code

// runCommandDeclaration is the declaration of code.run_command, for the milliseconds that a command may take, twice.
const runCommandDeclaration = `{
	"name": "run_command",
	"title": "Run command",
	"description": "Runs one command: a program and its arguments as a list, without a shell, so no pipes, globs, variables, redirections or &&. It runs in the project unless cwd says otherwise, with few environment variables and without input. Returns exit code, stdout and stderr; long output keeps its beginning and end. When the command ends or its time is over, everything it has started is ended.",
	"inputSchema": {
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"type": "object",
		"properties": {
			"argv": {"type": "array", "items": {"type": "string", "maxLength": 32768}, "minItems": 1, "maxItems": 1000, "description": "The program, found in PATH or given by its path, then its arguments, each as one string."},
			"cwd": {"type": "string", "minLength": 1, "maxLength": 4096, "default": ".", "description": "The directory to run in: relative to the project, or absolute."},
			"timeout_ms": {"type": "integer", "minimum": 1, "maximum": %d, "default": %d, "description": "Milliseconds after which the command is ended. Less than the default can be asked for, not more."}
		},
		"required": ["argv"],
		"additionalProperties": false
	},
	"outputSchema": {
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"type": "object",
		"properties": {
			"program": {"type": "string", "description": "The file that was run."},
			"cwd": {"type": "string", "description": "Where it ran, relative to the project where that lies inside."},
			"ending": {"type": "string", "enum": ["exited", "signaled", "timed_out", "canceled", "stopped"]},
			"exit_code": {"type": "integer", "description": "Where it exited by itself. 0 is success."},
			"signal": {"type": "string", "description": "That ended it."},
			"duration_ms": {"type": "integer", "minimum": 0},
			"stdout": {"type": "string"},
			"stderr": {"type": "string"},
			"stdout_bytes": {"type": "integer", "minimum": 0, "description": "That the command wrote."},
			"stderr_bytes": {"type": "integer", "minimum": 0},
			"stdout_truncated": {"type": "boolean", "description": "Whether the middle was left out."},
			"stderr_truncated": {"type": "boolean"}
		},
		"required": ["program", "cwd", "ending", "duration_ms", "stdout", "stderr", "stdout_bytes", "stderr_bytes", "stdout_truncated", "stderr_truncated"],
		"additionalProperties": false
	},
	"annotations": {"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true}
}`
