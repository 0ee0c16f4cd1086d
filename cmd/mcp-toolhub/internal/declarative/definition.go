package declarative

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
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
	script     string     // of shell
	variables  []template // that the script reads: one property each
	arguments  []template // of exec, and of a shell's "$1" …
	workingDir string
	env        []string
	timeout    time.Duration // 0: the usual
	stdout     int           // 0: the usual
	stderr     int
	output     string // what stdout is; "" where the file does not say, which is outputText

	warn sync.Once // that stdout, which is given as text, looks like a result
}

// What permission, command_type and output may be.
const (
	readonly = "readonly"
	write    = "write"
	exec     = "exec"
	shell    = "shell"

	outputText   = "text"
	outputResult = "result"

	tagDangerous = "dangerous"
)

var (
	namePattern     = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,47}$`)
	tagPattern      = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_()]{0,127}$`)
)

// place is a text of the file, with its place there.
type place = shape.Located[string]

// declared is what a file says, before the checks that look at more than one value.
type declared struct {
	name, description, schema, permission, kind, command, dir, output place
	tags                                                              []place
	args                                                              shape.Located[[]place]
	env                                                               []string
	stdout, stderr                                                    int
	timeout                                                           int64 // in milliseconds
}

// keys are all that a file may hold.
func (d *declared) keys() []shape.Field {
	limit := shape.Integer[int]{Min: 1, Max: command.MaxOutput}
	return []shape.Field{
		shape.Must(shape.KeyAt("name", "what the tool is called", shape.Text{Pattern: namePattern,
			Want: `small letters, digits, _ and -, 48 at most, without "` + Name + `." before it, which is added`},
			&d.name)),
		shape.Must(shape.KeyAt("description", "what the tool does", shape.Text{Empty: true, Check: saysSomething},
			&d.description)),
		shape.Must(shape.KeyAt("input_schema", "a JSON Schema of its arguments", shape.Func[string](anything),
			&d.schema)),
		shape.Must(shape.KeyAt("permission", "readonly or write", shape.OneOf(readonly, write), &d.permission)),
		shape.Key("tags", "", shape.ListAt(shape.Text{Pattern: tagPattern, Want: "small letters, digits, _ and -"}),
			&d.tags),
		shape.KeyAt("command_type", "", shape.OneOf(exec, shell), &d.kind),
		shape.Must(shape.KeyAt("command", "a program", shape.Text{Empty: true, Check: namesProgram}, &d.command)),
		shape.KeyAt("args", "", shape.ListAt(shape.Text{Empty: true}), &d.args),
		shape.KeyAt("working_dir", "", shape.Text{Empty: true}, &d.dir),
		shape.Key("env_allowlist", "", shape.List[string]{Of: shape.Text{Pattern: variablePattern,
			Want: "the name of a variable, without its value"}}, &d.env),
		shape.Key("timeout_ms", "", shape.Integer[int64]{Min: 1, Max: command.MaxTimeout.Milliseconds()}, &d.timeout),
		shape.KeyAt("output", "", shape.OneOf(outputText, outputResult), &d.output),
		shape.Key("stdout_limit_bytes", "", limit, &d.stdout),
		shape.Key("stderr_limit_bytes", "", limit, &d.stderr),
	}
}

func saysSomething(text string) (fault, hint string) {
	if strings.TrimSpace(text) == "" {
		return "is empty", "say what the tool does, for the model that is to use it"
	}
	return "", ""
}

func namesProgram(text string) (fault, hint string) {
	if strings.TrimSpace(text) == "" || strings.ContainsRune(text, 0) {
		return "is empty or holds a NUL character", "name a program"
	}
	return "", ""
}

func anything(*shape.Reader, *textfile.Node) (string, bool) { return "", true }

// parsing is a file on its way to a definition.
type parsing struct {
	*shape.Reader
	*definition
	said   declared
	bounds *command.Bounds
	vars   map[string]variable // of the schema
}

// parse reads a file. It returns its definition, or all its faults.
func parse(file string, data []byte, bounds *command.Bounds) (*definition, []string) {
	p := &parsing{Reader: &shape.Reader{File: file}, bounds: bounds, definition: &definition{path: file, source: data}}
	if root := p.tree(data); root != nil {
		p.read(root)
	}
	if len(p.Faults) == 0 {
		p.tool = p.asTool()
		return p.definition, nil
	}
	var texts []string
	for _, f := range p.Faults.Sort() {
		texts = append(texts, f.Error())
	}
	return nil, texts
}

// tree reads the file, which is JSON without comments. It is nil after a fault.
func (p *parsing) tree(data []byte) *textfile.Node {
	root, faults := textfile.ParseJSON(data)
	if len(faults) == 0 && rawjson.Valid(data) {
		return root
	}
	var syntax *json.SyntaxError
	if errors.As(json.Unmarshal(data, new(json.RawMessage)), &syntax) {
		p.Fault(textfile.PositionOf(data, int(syntax.Offset)-1), "this is no JSON: "+syntax.Error(), "")
	} else {
		p.Fault(textfile.At(1, 1), "this is no JSON, or nests too deep", "simplify it")
	}
	return nil
}

// fault reports what is wrong with a value, and what to do.
func fault[V any](p *parsing, v shape.Located[V], format string, args ...any) {
	shape.FaultOf(p.Reader, v, fmt.Sprintf(format, args...), "")
}

func (p *parsing) read(root *textfile.Node) {
	d := &p.said
	if root.Kind != textfile.Mapping {
		p.Expected(root, "a mapping", "")
		return
	}
	shape.ReadFields(p.Reader, root, d.keys()...)
	p.nameAt, p.name, p.description = d.name.Position, d.name.Value, d.description.Value
	p.permission, p.env = d.permission.Value, d.env
	p.timeout = time.Duration(d.timeout) * time.Millisecond
	p.stdout, p.stderr, p.output = d.stdout, d.stderr, d.output.Value
	if d.schema.Present {
		p.input(d.schema)
	}
	p.takeTags()
	p.takeCommand()
	p.takeDir()
}

func (p *parsing) input(v place) {
	before := len(p.Faults)
	defer p.At(v.Path)()
	p.vars = p.checkSchema(v.Node)
	if len(p.Faults) > before {
		return
	}
	var compact bytes.Buffer
	_ = json.Compact(&compact, v.Node.Source)
	p.schema = compact.Bytes()
	if _, said := rawjson.Get(p.schema, "additionalProperties"); !said {
		if closed, err := rawjson.Set(p.schema, "additionalProperties", []byte("false")); err == nil {
			p.schema = closed
		}
	}
	p.compile(v)
}

func (p *parsing) takeTags() {
	permission := p.said.permission.Value
	for i, tag := range p.said.tags {
		switch {
		case !tag.OK:
		case tag.Value == readonly && permission != readonly, tag.Value == write && permission == readonly:
			fault(p, tag, "the tag contradicts the permission %q: change one of them", permission)
		case slices.ContainsFunc(p.said.tags[:i], func(other place) bool { return other.Value == tag.Value }):
			fault(p, tag, "the tag is there twice: remove one")
		case tag.Value != readonly && tag.Value != write:
			p.tags = append(p.tags, tag.Value)
		}
	}
}

func (p *parsing) takeCommand() {
	if p.shell = p.said.kind.Value == shell; p.shell {
		p.checkShell()
	}
	switch v := p.said.command; {
	case !v.OK:
	case p.shell:
		p.takeText(v)
	case holdsValue(v):
		fault(p, v, "the program cannot be a value of the call: templates stand in args")
	default:
		p.program = v.Value
		p.checkWords(v, p.said.args.Value)
	}
	p.takeArgs()
}

func (p *parsing) checkShell() {
	if p.said.permission.Value == readonly && !slices.Contains(p.tags, tagDangerous) {
		fault(p, p.said.kind,
			`a shell command needs the tag "dangerous" or the permission "write": add one, or use exec`)
	}
	if runtime.GOOS == "windows" {
		fault(p, p.said.kind, "there is no shell on Windows that takes values safely: use exec")
	}
}

func (p *parsing) takeArgs() {
	args := p.said.args
	if len(args.Value) > maxArguments {
		fault(p, args, "are over %d: write fewer", maxArguments)
	}
	closed := false // after "--" nothing is taken for an option
	for _, arg := range args.Value {
		if !arg.OK {
			continue
		}
		t := p.template(arg, arg.Value)
		t.guard(closed && !p.shell)
		p.arguments = append(p.arguments, t)
		closed = closed || arg.Value == "--"
	}
}

func (p *parsing) takeDir() {
	if !p.said.dir.OK {
		return
	}
	p.workingDir = p.said.dir.Value
	var why *command.Problem
	switch _, err := p.bounds.Dir(p.workingDir); {
	case strings.Contains(p.workingDir, "{{"):
		fault(p, p.said.dir, "the directory cannot be a value of the call: write a path")
	case errors.As(err, &why) && why.Code == command.CodeOutsideRoots:
		fault(p, p.said.dir, "is outside of the directories in which commands may run: name another one, or add it to "+
			"hub.toolsets.declarative.roots in the hub's config")
	case err != nil:
		fault(p, p.said.dir, "%s", err)
	}
}

// asTool is the tool that the file declares. Its version is that of the whole file: whatever was
// permitted of the tool was permitted of this command.
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
	return &tool.Tool{Name: tool.Name(Name + "." + d.name), Server: Name, Native: d.name, Declaration: raw,
		InputSchema:  d.schema,
		SchemaDigest: tool.Digest(d.schema), SourceDigest: tool.Digest(slices.Concat(d.schema, d.source)),
		Description: d.description,
		Tags:        slices.Concat([]string{Name}, d.tags, []string{d.permission})}
}
