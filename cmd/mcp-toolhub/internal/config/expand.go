package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secrets"
	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// inputVariable is the environment variable that answers VS Code's ${input:id}: MCP_TOOLHUB_INPUT_ and the id in upper
// case, with _ for what is neither a letter nor a digit.
func inputVariable(id string) string {
	return "MCP_TOOLHUB_INPUT_" + strings.ToUpper(notAlphanumeric.ReplaceAllString(id, "_"))
}

// maxSecretBytes bounds what one ${file:…} or envFile may bring in.
const maxSecretBytes = 1 << 20

// input is one of VS Code's input variables.
type input struct {
	id       shape.Located[string]
	fallback shape.Located[string]
}

// variables hold the values of ${…} in one file.
type variables struct {
	env       Env
	dir       string // of the file, absolute: ${file:…} starts here
	workspace string // ${workspaceFolder}, absolute: every other relative path starts here
	inputs    []input
}

func newVariables(file string, env Env) *variables {
	dir := filepath.Dir(absolute(file))
	v := &variables{env: env, dir: dir, workspace: dir}
	// A client's directory holds the file; the folder that it is about is the one above.
	if slices.Contains([]string{".vscode", ".cursor", ".gemini", ".claude"}, filepath.Base(dir)) {
		v.workspace = filepath.Dir(dir)
	}
	return v
}

// path makes a path of the file absolute: ~ is the user's home, relative paths start at the workspace folder.
func (v *variables) path(p string) string {
	p = v.tilde(p)
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(v.workspace, p)
}

// paths makes each of them absolute.
func (v *variables) paths(all []string) []string {
	for i, p := range all {
		all[i] = v.path(p)
	}
	return all
}

func (v *variables) tilde(p string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		if home := v.env.home(); home != "" {
			return filepath.Join(home, rest)
		}
	}
	return p
}

func (e Env) lookup(name string) (string, bool) {
	if e == nil {
		return "", false
	}
	return e(name)
}

func (e Env) value(name string) string {
	value, _ := e.lookup(name)
	return value
}

// home is the user's home directory, "" where the environment does not tell.
func (e Env) home() string { return e.homeOn(runtime.GOOS) }

func (e Env) homeOn(goos string) string {
	if goos == "windows" {
		return e.value("USERPROFILE")
	}
	return e.value("HOME")
}

// expansion replaces the references in one string.
type expansion struct {
	*reader
	start    textfile.Position // of the string
	defaults bool              // a default may be suggested

	shape.Expansion // Unknown is for references within a server that is disabled or left out
}

// expand replaces each ${…} in s, which stands at p. It does not look at what comes out again. $${
// stands for ${ itself. With defaults it suggests a default for a variable that is not set. It
// returns false after a fault.
func (r *reader) expand(p textfile.Position, s string, defaults bool) (shape.Expansion, bool) {
	e := expansion{reader: r, start: p, defaults: defaults}
	var b strings.Builder
	sound := true
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			b.WriteString(s)
			break
		}
		if i > 0 && s[i-1] == '$' {
			b.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		b.WriteString(s[:i])
		end := closing(s[i:])
		if end < 0 {
			e.Fault(e.start, "${ without a closing }", "close the reference, or write $${ for the characters ${")
			return e.Expansion, false
		}
		value, ok := e.resolve(s[i+2 : i+end])
		sound = sound && ok
		b.WriteString(value)
		s = s[i+end+1:]
	}
	e.Text = b.String()
	return e.Expansion, sound
}

// secretDefault matches the one reference that holds another.
var secretDefault = regexp.MustCompile(`^\$\{(?:env:)?[^{}:]*:-\$\{secret:[^{}]*\}\}`)

// closing returns where the reference that s begins with ends, -1 if it does not.
func closing(s string) int {
	if found := secretDefault.FindString(s); found != "" {
		return len(found) - 1
	}
	return strings.IndexByte(s, '}')
}

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// envName admits what Windows calls its own variables: ProgramFiles(x86).
	envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_().-]*$`)
	inputID = regexp.MustCompile(`^[A-Za-z0-9_. -]{1,100}$`)

	notAlphanumeric = regexp.MustCompile(`[^A-Za-z0-9]`)
)

const references = "${VAR}, ${VAR:-default}, ${VAR:-${secret:name}}, ${env:VAR}, ${file:path}, ${secret:name}, " +
	"${input:id}, ${workspaceFolder}, ${workspaceFolderBasename}, ${userHome}, ${pathSeparator}"

// resolve returns what ${body} stands for.
func (e *expansion) resolve(body string) (string, bool) {
	if strings.Contains(body, "${") && !secretDefault.MatchString("${"+body+"}") {
		e.Fault(e.start, "a ${…} within another",
			"only a variable's default can be one, and only ${secret:name}: set a variable of its own for it")
		return "", false
	}
	word, rest, prefixed := strings.Cut(body, ":")
	switch {
	case body == "workspaceFolder":
		return e.vars.workspace, true
	case body == "workspaceFolderBasename":
		return filepath.Base(e.vars.workspace), true
	case body == "pathSeparator" || body == "/":
		return string(filepath.Separator), true
	case body == "userHome":
		if home := e.vars.env.home(); home != "" {
			return home, true
		}
		return e.missing("${userHome} is not known", "set HOME (USERPROFILE on Windows)")
	case prefixed && word == "file":
		return e.fileReference(rest)
	case prefixed && word == "input":
		return e.inputReference(rest)
	case prefixed && word == "secret":
		return e.secretReference(rest)
	case prefixed && word == "env":
		return e.variable(rest, envName)
	}
	return e.variable(body, variableName)
}

// missing reports a reference without a value. Within a server that is disabled, or can be left out, it is no fault.
func (e *expansion) missing(message, hint string) (string, bool) {
	if e.reader.missing != nil {
		*e.reader.missing = append(*e.reader.missing, textfile.Fault{File: e.File, Position: e.start, Key: e.Path,
			Message: message, Hint: hint})
		e.Unknown = true
		return "", true
	}
	e.Fault(e.start, message, hint)
	return "", false
}

// refer notes what the text refers to, also if that is not used.
func (e *expansion) refer(kind, name string) {
	e.references = append(e.references, referred{e.start, kind + name})
}

func (e *expansion) variable(body string, names *regexp.Regexp) (string, bool) {
	name, fallback, hasFallback := strings.Cut(body, ":-")
	if !names.MatchString(name) {
		// The body is not shown: it may be a piece of a secret that happens to hold "${".
		e.Fault(e.start, "a ${…} that is no reference", "known are "+references+"; write $${ for the characters ${")
		return "", false
	}
	e.refer(fromEnv, name)
	secret, isStored := strings.CutPrefix(strings.TrimSuffix(fallback, "}"), "${secret:")
	if isStored {
		e.refer(fromSecret, secret)
	}
	value, set := e.vars.env.lookup(name)
	if hasFallback && value == "" { // as in a shell: :- also stands in for an empty variable
		if isStored {
			return e.secretReference(secret)
		}
		e.FromFile = true
		return fallback, true
	}
	if !set {
		hint := "set it in the environment of the hub"
		if !hasFallback && e.defaults {
			hint += ", or give a default: ${" + name + ":-default}"
		}
		return e.missing("the variable "+name+" is not set", hint)
	}
	e.Reference = true
	return value, true
}

func (e *expansion) fileReference(path string) (string, bool) {
	if path == "" {
		e.Fault(e.start, "${file:} without a path", "write ${file:path}")
		return "", false
	}
	e.refer(fromFile, path)
	full := e.vars.tilde(path)
	if !filepath.IsAbs(full) {
		full = filepath.Join(e.vars.dir, full)
	}
	data, err := readRegular(full, maxSecretBytes)
	if err != nil {
		return e.missing(fmt.Sprintf("cannot read the file %s of ${file:…}", shape.Quote(path)),
			readProblem(err).Error())
	}
	e.note(full, data)
	return e.secret(strings.TrimRight(string(data), "\r\n"))
}

func (e *expansion) secretReference(name string) (string, bool) {
	if !secrets.ValidName(name) {
		e.Fault(e.start, "a ${secret:…} that is no reference", "write ${secret:name} with the name of a secret")
		return "", false
	}
	e.refer(fromSecret, name)
	stored, err := e.storedSecrets()
	if err != nil {
		return e.missing(err.Error(), "")
	}
	value, ok := stored[name]
	if !ok {
		return e.missing("the secret "+name+" is not stored", "store it with: mcp-toolhub secrets set "+name)
	}
	return e.secret(value)
}

// secret notes that value is a secret, whatever it is for.
func (e *expansion) secret(value string) (string, bool) {
	e.known, e.Reference = append(e.known, value), true
	return value, true
}

func (e *expansion) inputReference(id string) (string, bool) {
	i := slices.IndexFunc(e.vars.inputs, func(in input) bool { return in.id.Value == id })
	if i < 0 && !inputID.MatchString(id) {
		e.Fault(e.start, "a ${input:…} that is no reference", "write ${input:id} with the id of an input")
		return "", false
	}
	if i < 0 {
		var ids []string
		for _, in := range e.vars.inputs {
			ids = append(ids, in.id.Value)
		}
		e.Fault(e.start, "${input:"+clip(id)+"} names no input",
			textfile.DidYouMean(id, ids, `add the input to "inputs"`))
		return "", false
	}
	e.refer(fromInput, id)
	name := inputVariable(id)
	if value, set := e.vars.env.lookup(name); set {
		e.Reference = true
		return value, true
	}
	if fallback := e.vars.inputs[i].fallback; fallback.OK {
		e.FromFile = true
		return fallback.Value, true
	}
	return e.missing("the input "+clip(id)+" has no value: the hub cannot ask for it",
		"set the environment variable "+name)
}

// clip makes a name fit for a message.
func clip(s string) string {
	q := shape.Quote(s)
	return q[1 : len(q)-1]
}
