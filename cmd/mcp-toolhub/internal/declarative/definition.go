package declarative

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// definition is one file, checked.
type definition struct {
	path   string // of the file
	source []byte
	nameAt textfile.Position
	tool   *tool.Tool // that the file declares

	name, description string
	schema            json.RawMessage
	permission        string   // readonly or write
	tags              []string // without readonly and write

	shell      bool
	program    string     // of exec
	script     string     // of shell: where values belong it names variables that setup sets
	arguments  []template // of exec, and of a shell's "$1" …
	workingDir string
	env        []string
	timeout    time.Duration // 0: the usual
	stdout     int           // 0: the usual
	stderr     int
}

// What permission and command_type may be.
const (
	readonly = "readonly"
	write    = "write"
	exec     = "exec"
	shell    = "shell"

	tagDangerous = "dangerous"
)

// fields are all that a file may hold.
func fields() []string {
	return []string{"name", "description", "input_schema", "permission", "tags", "command_type", "command", "args", "working_dir",
		"env_allowlist", "timeout_ms", "stdout_limit_bytes", "stderr_limit_bytes"}
}

var (
	namePattern     = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,47}$`)
	tagPattern      = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_()]{0,127}$`)
)

// parsing is a file on its way to a definition.
type parsing struct {
	reader
	*definition
	bounds *command.Bounds
	have   map[string]member
	vars   map[string]variable // of the schema
}

// parse reads a file. It returns its definition, or all its faults.
func parse(file string, data []byte, bounds *command.Bounds) (*definition, []string) {
	p := &parsing{reader: reader{file: file}, bounds: bounds, have: make(map[string]member),
		definition: &definition{path: file, source: data}}
	root := p.tree(data)
	if root == nil {
		return nil, p.texts()
	}
	members := p.members(value{root, ""})
	if root.Kind != textfile.Mapping {
		return nil, p.texts()
	}
	for _, m := range members {
		if !slices.Contains(fields(), m.name) {
			p.fault(m.nameAt, m.name, "unknown field: the fields are %s", strings.Join(fields(), ", "))
		}
		p.have[m.name] = m
	}
	p.identity()
	p.input()
	p.allowance()
	p.command()
	p.limits()
	if len(p.faults) > 0 {
		return nil, p.texts()
	}
	p.tool = p.asTool()
	return p.definition, nil
}

// required returns a member that must be there.
func (p *parsing) required(name string) (value, bool) {
	m, ok := p.have[name]
	if !ok {
		p.fault(textfile.At(1, 1), name, "the field is missing: add it")
	}
	return m.value, ok
}

func (p *parsing) identity() {
	if v, ok := p.required("name"); ok {
		p.nameAt = v.Position
		if p.name, ok = p.text(v); ok && !namePattern.MatchString(p.name) {
			p.fault(v.Position, v.key, "want small letters, digits, _ and -, 48 at most, without %q before it, which is added", Name+".")
		}
	}
	if v, ok := p.required("description"); ok {
		if p.description, ok = p.text(v); ok && strings.TrimSpace(p.description) == "" {
			p.fault(v.Position, v.key, "is empty: say what the tool does, for the model that is to use it")
		}
	}
}

func (p *parsing) input() {
	v, ok := p.required("input_schema")
	if !ok {
		return
	}
	before := len(p.faults)
	p.vars = p.checkSchema(v)
	if len(p.faults) > before {
		return
	}
	var compact bytes.Buffer
	_ = json.Compact(&compact, v.Source)
	p.schema = compact.Bytes()
	if _, said := rawjson.Get(p.schema, "additionalProperties"); !said {
		if closed, err := rawjson.Set(p.schema, "additionalProperties", []byte("false")); err == nil {
			p.schema = closed
		}
	}
	p.compile(v)
}

func (p *parsing) allowance() {
	if v, ok := p.required("permission"); ok {
		if p.permission, ok = p.text(v); ok && p.permission != readonly && p.permission != write {
			p.fault(v.Position, v.key, `want "readonly" or "write"`)
		}
	}
	m, ok := p.have["tags"]
	if !ok {
		return
	}
	words, at := p.words(m.value)
	for i, tag := range words {
		switch {
		case !tagPattern.MatchString(tag):
			p.fault(at[i].Position, at[i].key, "want small letters, digits, _ and -")
		case tag == readonly && p.permission != readonly, tag == write && p.permission == readonly:
			p.fault(at[i].Position, at[i].key, "the tag contradicts the permission %q: change one of them", p.permission)
		case slices.Contains(words[:i], tag):
			p.fault(at[i].Position, at[i].key, "the tag is there twice: remove one")
		case tag != readonly && tag != write:
			p.tags = append(p.tags, tag)
		}
	}
}

func (p *parsing) command() {
	if m, ok := p.have["command_type"]; ok {
		kind, ok := p.text(m.value)
		if ok && kind != exec && kind != shell {
			p.fault(m.Position, m.key, `want "exec" or "shell"`)
		}
		if p.shell = kind == shell; p.shell {
			p.checkShell(m.value)
		}
	}
	v, ok := p.required("command")
	text, isText := "", false
	if ok {
		text, isText = p.text(v)
	}
	switch {
	case !isText:
	case strings.TrimSpace(text) == "" || strings.ContainsRune(text, 0):
		p.fault(v.Position, v.key, "is empty or holds a NUL character: name a program")
	case p.shell:
		p.script = p.shellText(v, text)
	case strings.Contains(text, "{{"):
		p.fault(v.Position, v.key, "the program cannot be a value of the call: templates stand in args")
	default:
		p.program = text
	}
	p.args()
}

func (p *parsing) checkShell(v value) {
	if p.permission == readonly && !slices.Contains(p.tags, tagDangerous) {
		p.fault(v.Position, v.key, `a shell command needs the tag "dangerous" or the permission "write": add one, or use exec`)
	}
	if runtime.GOOS == "windows" {
		p.fault(v.Position, v.key, "there is no shell on Windows that takes values safely: use exec")
	}
}

func (p *parsing) args() {
	m, ok := p.have["args"]
	if !ok {
		p.judge(nil)
		return
	}
	var given []word
	words, at := p.words(m.value)
	if len(words) > maxArguments {
		p.fault(m.Position, m.key, "are over %d: write fewer", maxArguments)
	}
	if p.shell && len(words) > 0 && len(p.arguments) > 0 {
		p.fault(m.Position, m.key, "a shell command has its values either in its text or in args: remove the one or the other")
		return
	}
	closed := false // after "--" nothing is taken for an option
	for i, word := range words {
		t := p.template(at[i], word)
		if p.shell && len(t) > 1 {
			p.fault(at[i].Position, at[i].key, "an argument of a shell command is one template or none: take the text around it away")
		}
		t.guard(closed && !p.shell)
		p.arguments = append(p.arguments, t)
		closed = closed || word == "--"
		given = append(given, t.word(word, at[i]))
	}
	p.judge(given)
}

// judge judges a program with its arguments, or a shell's text that gets its values as arguments.
func (p *parsing) judge(given []word) {
	command := p.have["command"].value
	j := judgement{hasValues: slices.ContainsFunc(given, func(w word) bool { return w.value })}
	switch {
	case p.program != "":
		p.judged(j.command(append([]word{literal(p.program, command)}, given...)))
	case p.script != "" && len(p.arguments) == len(given):
		p.judged(j.text(p.script, &values{numbered: j.hasValues}, command))
	}
}

func (p *parsing) limits() {
	if m, ok := p.have["working_dir"]; ok {
		dir, ok := p.text(m.value)
		if p.workingDir = dir; ok {
			var why *command.Problem
			switch _, err := p.bounds.Dir(dir); {
			case strings.Contains(dir, "{{"):
				p.fault(m.Position, m.key, "the directory cannot be a value of the call: write a path")
			case errors.As(err, &why) && why.Code == command.CodeOutsideRoots:
				p.fault(m.Position, m.key, "is outside of the directories in which commands may run: name another one, or add it to "+
					"hub.toolsets.declarative.roots in the hub's config")
			case err != nil:
				p.fault(m.Position, m.key, "%s", err)
			}
		}
	}
	if m, ok := p.have["env_allowlist"]; ok {
		var at []value
		p.env, at = p.words(m.value)
		for i, name := range p.env {
			if !variablePattern.MatchString(name) {
				p.fault(at[i].Position, at[i].key, "want the name of a variable, without its value")
			}
		}
	}
	if m, ok := p.have["timeout_ms"]; ok {
		most := p.bounds.Config().MaxTimeout.Milliseconds()
		p.timeout = time.Duration(p.integer(m.value, 1, most, "hub.toolsets.declarative.max_timeout in the hub's config says so")) * time.Millisecond
	}
	const hint = "more is not kept of any command"
	if m, ok := p.have["stdout_limit_bytes"]; ok {
		p.stdout = int(p.integer(m.value, 1, command.MostOutput, hint))
	}
	if m, ok := p.have["stderr_limit_bytes"]; ok {
		p.stderr = int(p.integer(m.value, 1, command.MostOutput, hint))
	}
}

// asTool is the tool that the file declares. Its schema's digest is that of the whole file: whatever was permitted of the tool
// was permitted of this command.
func (d *definition) asTool() *tool.Tool {
	declaration := struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
		Annotations struct {
			ReadOnly    bool  `json:"readOnlyHint"`
			Destructive *bool `json:"destructiveHint,omitempty"`
			OpenWorld   *bool `json:"openWorldHint,omitempty"`
		} `json:"annotations"`
	}{Name: d.name, Description: d.description, InputSchema: d.schema}
	declaration.Annotations.ReadOnly = d.permission == readonly
	if d.permission == write && slices.Contains(d.tags, tagDangerous) {
		declaration.Annotations.Destructive = new(true)
	}
	if slices.Contains(d.tags, "network") {
		declaration.Annotations.OpenWorld = new(true)
	}
	raw, _ := rawjson.Encode(declaration) // cannot fail: the schema is valid
	return &tool.Tool{Name: tool.Name(Name + "." + d.name), Server: Name, Native: d.name, Declaration: raw, InputSchema: d.schema,
		SchemaDigest: tool.Digest(slices.Concat(d.schema, d.source)), Description: d.description,
		Tags: slices.Concat([]string{Name}, d.tags, []string{d.permission})}
}
