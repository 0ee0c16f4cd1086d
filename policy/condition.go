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

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

const (
	// maxCost bounds one evaluation. A comparison costs about 1, a look at ten characters about 1:
	// what is beyond it took milliseconds, and counts as an error.
	maxCost = 50_000

	// maxCondition bounds the text of a condition, in bytes.
	maxCondition = 8 << 10
)

// The variables of conditions that have fields. The names of the types stand in error messages of the library.
type (
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

	celAgent struct {
		Run    string `cel:"run"`
		Name   string `cel:"name"`
		Parent string `cel:"parent"`
		Role   string `cel:"role"`
	}

	celTarget struct {
		Kind       string `cel:"kind"`
		Argument   string `cel:"argument"`
		Given      string `cel:"given"`
		Resolved   string `cel:"resolved"`
		Host       string `cel:"host"`
		Executable string `cel:"executable"`
		Called     string `cel:"called"`
		Write      bool   `cel:"write"`
		Remote     bool   `cel:"remote"`
		Fault      string `cel:"fault"`

		Notes []string `cel:"notes"`
	}
)

const (
	celToolName   = "policy.celTool"
	celActorName  = "policy.celActor"
	celAgentName  = "policy.celAgent"
	celTargetName = "policy.celTarget"
)

// celTypes are the types that conditions know: the basic ones and the four above.
type celTypes struct{ *types.Registry }

func newCelTypes() (celTypes, error) {
	t := celTypes{types.NewEmptyRegistry()}
	err := t.RegisterType(types.BoolType, types.BytesType, types.DoubleType, types.DurationType, types.IntType,
		types.ListType,
		types.MapType, types.NullType, types.StringType, types.TimestampType, types.TypeType, types.UintType,
		types.OptionalType)
	for _, record := range []reflect.Type{reflect.TypeFor[celTool](), reflect.TypeFor[celActor](),
		reflect.TypeFor[celAgent](),
		reflect.TypeFor[celTarget]()} {
		native, fault := types.NewNativeType(record, types.ParseStructTags(true))
		err = errors.Join(err, fault)
		if fault == nil {
			err = errors.Join(err, t.RegisterType(native))
		}
	}
	return t, err
}

// FindStructType leaves out the protocol buffer messages that every registry knows.
func (t celTypes) FindStructType(name string) (*types.Type, bool) {
	if !strings.HasPrefix(name, "policy.") {
		return nil, false
	}
	return t.Registry.FindStructType(name)
}

// NewValue refuses to make values of these types: conditions only read them.
func (celTypes) NewValue(name string, _ map[string]ref.Val) ref.Val {
	return types.NewErr("conditions make no %s", name)
}

// under is a function of conditions: it reports whether the path p is dir or beneath it. An address
// is beneath no directory. A path that is relative or not normalised is an error, which counts
// against the call, because it may lead anywhere.
func under(p, dir string) ref.Val {
	switch {
	case isNormal(p) && isNormal(dir):
		return types.Bool(isUnder(p, dir))
	case strings.Contains(p, "://"):
		return types.False
	}
	return types.NewErr("under: a path is not absolute or not normalised: use the resolved path of targets")
}

// conditions compiles conditions. It is used by one goroutine. The zero value is ready: the environment is made for the
// first condition, because most configs have none, and it is 2 MB.
type conditions struct {
	env *cel.Env // nil: not made yet
}

// prepare makes the environment, once.
func (c *conditions) prepare() error {
	if c.env != nil {
		return nil
	}
	known, err := newCelTypes()
	if err != nil {
		return fmt.Errorf("prepare conditions: %w", err)
	}
	object := cel.MapType(cel.StringType, cel.DynType)
	c.env, err = cel.NewCustomEnv(cel.StdLib(), cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true),
		cel.CustomTypeAdapter(known), cel.CustomTypeProvider(known),
		cel.ParserRecursionLimit(100), cel.ParserExpressionSizeLimit(maxCondition),
		cel.Variable("arguments", object),
		cel.Variable("_meta", object),
		cel.Variable("targets", cel.ListType(cel.ObjectType(celTargetName))),
		cel.Variable("tool", cel.ObjectType(celToolName)),
		cel.Variable("actor", cel.ObjectType(celActorName)),
		cel.Variable("agent", cel.ObjectType(celAgentName)),
		cel.Variable("time", cel.TimestampType),
		cel.Variable("profile", cel.StringType),
		cel.Variable("cwd", cel.StringType),
		cel.Function("under", cel.Overload("under_string_string", []*cel.Type{cel.StringType, cel.StringType},
			cel.BoolType,
			cel.BinaryBinding(underValues))))
	if err != nil {
		return fmt.Errorf("prepare conditions: %w", err)
	}
	return nil
}

// underValues is under for values of the library.
func underValues(path, dir ref.Val) ref.Val {
	p, ok1 := path.(types.String)
	d, ok2 := dir.(types.String)
	if !ok1 || !ok2 {
		return types.NewErr("under takes two strings")
	}
	return under(string(p), string(d))
}

// condition is a compiled one. It is safe for concurrent use.
type condition struct {
	program cel.Program
	static  bool // depends on the tool, the profile and who calls alone: the same for every call
}

// compile compiles the text of a condition. It returns every error, each with its place in the text; of text that is no
// expression the first alone, because the others follow from it.
func (c *conditions) compile(text string) (*condition, []error) {
	if len(text) > maxCondition {
		return nil, []error{fmt.Errorf("a condition of more than %d bytes: split the rule", maxCondition)}
	}
	if err := c.prepare(); err != nil {
		return nil, []error{err}
	}
	parsed, issues := c.env.Parse(text)
	if errs := conditionFaults(issues); len(errs) > 0 {
		return nil, errs[:1]
	}
	checked, issues := c.env.Check(parsed)
	if errs := conditionFaults(issues); len(errs) > 0 {
		return nil, errs
	}
	if t := checked.OutputType(); !t.IsExactType(types.BoolType) && !t.IsExactType(types.DynType) {
		return nil, []error{fmt.Errorf("the condition is a %s: write an expression that is true or false", t)}
	}
	program, err := c.env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxCost))
	if err != nil {
		return nil, []error{fmt.Errorf("the condition cannot be planned: %w", err)}
	}
	return &condition{program: program, static: isStatic(checked.NativeRep().Expr())}, nil
}

// conditionFaults are faults of the library, one line each: its own text draws the expression with a caret.
func conditionFaults(issues *cel.Issues) []error {
	named := strings.NewReplacer(celActorName, "actor", celAgentName, "agent", celToolName, "tool", celTargetName,
		"target")
	var errs []error
	for _, one := range issues.Errors() {
		message := named.Replace(strings.Join(strings.Fields(one.Message), " "))
		place := fmt.Sprintf("column %d", one.Location.Column()+1)
		if line := one.Location.Line(); line > 1 {
			place = fmt.Sprintf("line %d, %s", line, place)
		}
		hint := "mend it, as docs/permission.md says what conditions are"
		switch {
		case strings.HasPrefix(message, "undeclared reference to"):
			hint = "there are arguments, _meta, targets, actor, agent, tool, time, profile and cwd"
		case strings.HasPrefix(message, "undefined field"):
			hint = "docs/permission.md says which there are"
		case strings.Contains(message, "no matching overload") && strings.Contains(one.Message, celActorName):
			hint = "actor has several fields: use actor.name"
		case strings.Contains(message, "no matching overload") && strings.Contains(one.Message, celAgentName):
			hint = "agent has several fields: use agent.role"
		case strings.Contains(message, "no matching overload") && strings.Contains(one.Message, celToolName):
			hint = "tool has several fields: use tool.name"
		}
		errs = append(errs, fmt.Errorf("%s of the condition: %s; %s", place, message, hint))
	}
	return errs
}

// isStatic reports whether the expression names nothing that differs from call to call.
func isStatic(e celast.Expr) bool {
	static, actors, fixed := true, 0, 0
	celast.PreOrderVisit(e, celast.NewExprVisitor(func(e celast.Expr) {
		switch e.Kind() {
		case celast.IdentKind:
			switch strings.TrimPrefix(e.AsIdent(), ".") {
			case "arguments", "_meta", "agent", "targets", "time", "cwd":
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

// holds evaluates the condition over s. An error counts against the call.
func (c *condition) holds(s *subject) (bool, error) {
	out, _, err := c.program.Eval(s)
	if err != nil {
		return false, errors.New(oneLine(err.Error()))
	}
	holds, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the condition is a %s and neither true nor false", out.Type().TypeName())
	}
	return bool(holds), nil
}

// subject is one request, decoded as far as conditions have needed it so far. It is used by one goroutine.
type subject struct {
	*Request
	now time.Time

	arguments, meta object
	tool            *celTool
	actor           *celActor
	agent           *celAgent
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

var _ cel.Activation = (*subject)(nil)

// Parent is part of the library's interface.
func (s *subject) Parent() cel.Activation { return nil }

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
			s.actor = &celActor{Name: a.Name, Door: a.Door, Session: a.Session, Client: a.Client.Name,
				ClientVersion: a.Client.Version}
		}
		return s.actor, true
	case "agent":
		if s.agent == nil {
			a, err := tool.AgentOf(s.Meta)
			if err != nil {
				return types.NewErr("agent: %v", err), true
			}
			s.agent = &celAgent{}
			if a != nil {
				s.agent = &celAgent{Run: a.Run, Name: a.Name, Parent: a.Parent, Role: a.Role}
			}
		}
		return s.agent, true
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
		Lifecycle: f.Lifecycle.Value, Access: f.Access.Value, WriteEffects: f.WriteEffects.Value,
		ReadOnly:    f.ReadOnly.Value,
		Destructive: f.Destructive.Value, Idempotent: f.Idempotent.Value, OpenWorld: f.OpenWorld.Value,
		Network: f.Network.Value, Filesystem: f.Filesystem.Value, Command: f.Command.Value, Trusted: f.Trusted,
	}
	if r.Tool != nil {
		t.Name, t.Server, t.Native = string(r.Tool.Name), r.Tool.Server, r.Tool.Native
	}
	return t
}

func targetsOf(targets []target.Target) []celTarget {
	all := make([]celTarget, len(targets))
	for i, t := range targets {
		all[i] = celTarget{Kind: string(t.Kind), Argument: t.Argument, Given: t.Given, Resolved: t.Resolved,
			Host:       t.Host,
			Executable: t.Executable, Called: t.As, Write: t.Write, Remote: t.Remote, Fault: t.Fault}
		for _, n := range t.Notes {
			all[i].Notes = append(all[i].Notes, string(n))
		}
	}
	return all
}

// oneLine keeps messages of the library, which may quote arguments, to one line of bounded length.
func oneLine(text string) string { return hidden.Cut(strings.Join(strings.Fields(text), " "), 200) }
