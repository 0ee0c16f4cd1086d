package policy

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"

	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

const (
	// maxCost bounds one evaluation. A comparison costs about 1, a look at ten characters about 1: what is beyond it took
	// milliseconds, and counts as an error.
	maxCost = 50_000

	// maxCondition bounds the text of a condition, in bytes.
	maxCondition = 8 << 10
)

// What conditions see. The names of the types stand in error messages of the library.
type (
	// Tool is the variable tool.
	celTool struct {
		Name         string   `cel:"name"`
		Server       string   `cel:"server"`
		Native       string   `cel:"native"`
		Tags         []string `cel:"tags"`
		Risk         string   `cel:"risk"`
		Kind         string   `cel:"kind"`
		Lifecycle    string   `cel:"lifecycle"`
		Access       []string `cel:"access"`
		WriteEffects []string `cel:"write_effects"`
		ReadOnly     bool     `cel:"read_only"`
		Destructive  bool     `cel:"destructive"`
		Idempotent   bool     `cel:"idempotent"`
		OpenWorld    bool     `cel:"open_world"`
		Network      bool     `cel:"network"`
		Filesystem   bool     `cel:"filesystem"`
		Command      bool     `cel:"command"`
		Trusted      bool     `cel:"trusted"`
	}

	celActor struct {
		Name          string `cel:"name"`
		Door          string `cel:"door"`
		Session       string `cel:"session"`
		Client        string `cel:"client"`
		ClientVersion string `cel:"client_version"`
	}

	celTarget struct {
		Kind       string `cel:"kind"`
		Argument   string `cel:"argument"`
		Given      string `cel:"given"`
		Resolved   string `cel:"resolved"`
		Host       string `cel:"host"`
		Executable string `cel:"executable"`
		Write      bool   `cel:"write"`
		Remote     bool   `cel:"remote"`
		Fault      string `cel:"fault"`
	}
)

// conditions compiles conditions.
type conditions struct{ env *cel.Env }

func newConditions() (*conditions, error) {
	object := func(name string) *cel.Type { return cel.ObjectType("policy." + name) }
	env, err := cel.NewEnv(
		ext.NativeTypes(ext.ParseStructTags(true), reflect.TypeFor[celTool](), reflect.TypeFor[celActor](),
			reflect.TypeFor[celTarget]()),
		cel.Variable("arguments", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("_meta", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("targets", cel.ListType(object("celTarget"))),
		cel.Variable("tool", object("celTool")),
		cel.Variable("actor", object("celActor")),
		cel.Variable("time", cel.TimestampType),
		cel.Variable("profile", cel.StringType),
		cel.Variable("cwd", cel.StringType),
		cel.Function("under", cel.Overload("under_string_string", []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType,
			cel.BinaryBinding(func(path, dir ref.Val) ref.Val {
				p, ok1 := path.Value().(string)
				d, ok2 := dir.Value().(string)
				if !ok1 || !ok2 {
					return types.NewErr("under takes two strings")
				}
				return under(p, d)
			}))),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.OptionalTypes(),
		cel.ParserRecursionLimit(100),
		cel.ParserExpressionSizeLimit(maxCondition),
	)
	if err != nil {
		return nil, fmt.Errorf("prepare conditions: %w", err)
	}
	return &conditions{env}, nil
}

// under is the function of conditions: whether the path p is dir or beneath it. An address is beneath no directory; a path
// that is relative or not normalised leads nobody knows where, which is an error and so counts against the call.
func under(p, dir string) ref.Val {
	switch {
	case isNormal(p) && isNormal(dir):
		return types.Bool(isUnder(p, dir))
	case strings.Contains(p, "://"):
		return types.False
	}
	return types.NewErr("under: a path is not absolute or not normalised: use the resolved path of targets")
}

// condition is a compiled one. It is safe for concurrent use.
type condition struct {
	program cel.Program
	static  bool // depends on the tool, the profile and who calls alone: the same for every call
}

// compile compiles the text of a condition. An error says where in the text.
func (c *conditions) compile(text string) (*condition, error) {
	if len(text) > maxCondition {
		return nil, fmt.Errorf("a condition of more than %d bytes: split the rule", maxCondition)
	}
	checked, issues := c.env.Compile(text)
	if issues != nil && issues.Err() != nil {
		return nil, errors.New(issueText(issues))
	}
	if t := checked.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("the condition is a %s: write an expression that is true or false", t)
	}
	program, err := c.env.Program(checked, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostLimit(maxCost))
	if err != nil {
		return nil, fmt.Errorf("the condition cannot be planned: %w", err)
	}
	return &condition{program: program, static: isStatic(checked.NativeRep().Expr())}, nil
}

// issueText is the first issue, on one line: the library's own text draws the expression with a caret.
func issueText(issues *cel.Issues) string {
	all := issues.Errors()
	if len(all) == 0 {
		return "no CEL expression"
	}
	first := all[0]
	message := strings.Join(strings.Fields(first.Message), " ")
	place := fmt.Sprintf("column %d", first.Location.Column()+1)
	if line := first.Location.Line(); line > 1 {
		place = fmt.Sprintf("line %d, %s", line, place)
	}
	return fmt.Sprintf("%s of the condition: %s", place, message)
}

// isStatic reports whether the expression names nothing that differs from call to call.
func isStatic(e celast.Expr) bool {
	static, actors, fixed := true, 0, 0
	celast.PreOrderVisit(e, celast.NewExprVisitor(func(e celast.Expr) {
		switch e.Kind() {
		case celast.IdentKind:
			switch strings.TrimPrefix(e.AsIdent(), ".") {
			case "arguments", "_meta", "targets", "time", "cwd":
				static = false
			case "actor":
				actors++
			}
		case celast.SelectKind:
			s := e.AsSelect()
			if o := s.Operand(); o.Kind() == celast.IdentKind && o.AsIdent() == "actor" &&
				(s.FieldName() == "name" || s.FieldName() == "door") {
				fixed++
			}
		}
	}))
	return static && actors == fixed
}

// holds evaluates the condition over s. Every error means that nobody knows: rules then count against the call.
func (c *condition) holds(s *subject) (bool, error) {
	out, _, err := c.program.Eval(s)
	if err != nil {
		return false, errors.New(oneLine(err.Error()))
	}
	b, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the condition is a %s and neither true nor false", out.Type().TypeName())
	}
	return bool(b), nil
}

// subject is what the rules are asked about: one request, decoded as far as conditions have wanted it so far. It is used
// by one goroutine.
type subject struct {
	*Request
	now time.Time

	arguments, meta object
	tool            *celTool
	actor           *celActor
	targets         []celTarget
}

// object is a JSON object, decoded when it is first wanted.
type object struct {
	members map[string]any
	err     error
}

func (o *object) value(raw []byte, what string) (any, bool) {
	if o.members == nil && o.err == nil {
		o.members, o.err = decodeObject(raw)
	}
	if o.err != nil {
		return types.NewErr("%s: %v", what, o.err), true
	}
	return o.members, true
}

var _ interpreter.Activation = (*subject)(nil)

// Parent is part of the library's interface.
func (s *subject) Parent() interpreter.Activation { return nil }

// ResolveName is part of the library's interface: the value of a variable.
func (s *subject) ResolveName(name string) (any, bool) {
	switch name {
	case "arguments":
		return s.arguments.value(s.Input, "arguments")
	case "_meta":
		return s.meta.value(s.Meta, "_meta")
	case "tool":
		if s.tool == nil {
			s.tool = toolOf(s.Request)
		}
		return s.tool, true
	case "actor":
		if s.actor == nil {
			a := s.Actor
			s.actor = &celActor{Name: a.Name, Door: a.Door, Session: a.Session, Client: a.Client.Name, ClientVersion: a.Client.Version}
		}
		return s.actor, true
	case "targets":
		if s.targets == nil {
			s.targets = targetsOf(s.Targets)
		}
		return s.targets, true
	case "time":
		return s.now, true
	case "profile":
		return s.Profile, true
	case "cwd":
		return s.CWD, true
	}
	return nil, false
}

func toolOf(r *Request) *celTool {
	f := r.Facts
	t := &celTool{
		Server: f.Server, Name: string(f.Tool), Tags: f.Tags, Risk: f.Risk.Value, Kind: f.Kind.Value,
		Lifecycle: f.Lifecycle.Value, Access: f.Access.Value, WriteEffects: f.WriteEffects.Value, ReadOnly: f.ReadOnly.Value,
		Destructive: f.Destructive.Value, Idempotent: f.Idempotent.Value, OpenWorld: f.OpenWorld.Value,
		Network: f.Network.Value, Filesystem: f.Filesystem.Value, Command: f.Command.Value, Trusted: f.Trusted,
	}
	if r.Tool != nil {
		t.Name, t.Server, t.Native = string(r.Tool.Name), r.Tool.Server, r.Tool.Native
	}
	return t
}

func targetsOf(targets []target.Target) []celTarget {
	list := make([]celTarget, len(targets))
	for i, t := range targets {
		list[i] = celTarget{Kind: string(t.Kind), Argument: t.Argument, Given: t.Given, Resolved: t.Resolved, Host: t.Host,
			Executable: t.Executable, Write: t.Write, Remote: t.Remote, Fault: t.Fault}
	}
	return list
}

// oneLine keeps messages of the library, which may quote arguments, to one line of bounded length.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "…"
	}
	return text
}
