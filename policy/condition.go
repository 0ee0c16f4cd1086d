package policy

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

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
		return types.Bool(target.Under(p, dir))
	case strings.Contains(p, "://"):
		return types.False
	}
	return types.NewErr("under: a path is not absolute or not normalised: use the resolved path of targets")
}

// Compiler compiles conditions of rules, and what is matched or computed like them, such as hooks.
// One goroutine uses it. The zero value is ready: the environment is made for the first condition,
// because most configs have none, and it is 2 MB.
type Compiler struct {
	env *cel.Env // nil: not made yet
}

// prepare makes the environment, once.
func (c *Compiler) prepare() error {
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

// Expression is a compiled CEL expression over a call, such as the condition of a rule. It is safe
// for concurrent use.
type Expression struct {
	program cel.Program
	static  bool // depends on the tool, the profile and who calls alone: the same for every call
	result  *cel.Type
}

// compile compiles an expression. It returns every error, each with its place in the text; of text
// that is no expression the first alone, because the others follow from it.
func (c *Compiler) compile(text string) (*Expression, []error) {
	if len(text) > maxCondition {
		return nil, []error{fmt.Errorf("it has more than %d bytes: write less", maxCondition)}
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
	program, err := c.env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxCost))
	if err != nil {
		return nil, []error{fmt.Errorf("it cannot be planned: %w", err)}
	}
	return &Expression{program, isStatic(checked.NativeRep().Expr()), checked.OutputType()}, nil
}

// Expression compiles an expression that can have any value.
func (c *Compiler) Expression(text string) (*Expression, error) {
	e, errs := c.compile(text)
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return e, nil
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

// Holds reports whether the expression is true. Any value but true and false is an error, which
// counts against the call.
func (e *Expression) Holds(s *Subject) (bool, error) {
	out, _, err := e.program.Eval(s)
	if err != nil {
		return false, errors.New(oneLine(err.Error()))
	}
	holds, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the condition is a %s and neither true nor false", out.Type().TypeName())
	}
	return bool(holds), nil
}

// Subject is one call that matchers and expressions look at. What is large is made when it is first
// needed, and kept. One goroutine uses it.
type Subject struct {
	*Request
	arguments, meta any // a decoded object, or an error
	tool            *celTool
}

var _ cel.Activation = (*Subject)(nil)

// Parent is part of the library's interface.
func (s *Subject) Parent() cel.Activation { return nil }

// ResolveName is part of the library's interface: the value of a variable, which may be an error.
func (s *Subject) ResolveName(name string) (any, bool) {
	v := s.variable(name)
	return v, v != nil
}

func (s *Subject) variable(name string) any {
	switch name {
	case "arguments":
		if s.arguments == nil {
			s.arguments = objectOf(s.Input, name)
		}
		return s.arguments
	case "_meta":
		if s.meta == nil {
			s.meta = objectOf(s.Meta, name)
		}
		return s.meta
	case "tool":
		if s.tool == nil {
			s.tool = toolOf(s.Request)
		}
		return s.tool
	case "actor":
		a := &s.Actor
		return &celActor{Name: a.Name, Door: a.Door, Session: a.Session, Client: a.Client.Name,
			ClientVersion: a.Client.Version}
	case "agent":
		a, err := tool.AgentOf(s.Meta)
		switch {
		case err != nil:
			return types.NewErr("agent: %v", err)
		case a == nil:
			return &celAgent{}
		}
		return &celAgent{Run: a.Run, Name: a.Name, Parent: a.Parent, Role: a.Role}
	case "targets":
		return targetsOf(s.Targets)
	case "time":
		return s.Now
	case "profile":
		return s.Profile
	case "cwd":
		return s.CWD
	}
	return nil
}

func objectOf(raw []byte, what string) any {
	members, err := decodeObject(raw)
	if err != nil {
		return types.NewErr("%s: %v", what, err)
	}
	return members
}

func toolOf(r *Request) *celTool {
	f := r.Facts
	t := &celTool{
		Server: f.Server, Name: string(f.Tool), Tags: f.Tags, Risk: f.Risk.Value, Kind: f.Kind.Value,
		Lifecycle: f.Lifecycle.Value, Access: f.Access.Value, WriteEffects: f.WriteEffects.Value,
		ReadOnly: f.ReadOnly.Value, Destructive: f.Destructive.Value, Idempotent: f.Idempotent.Value,
		OpenWorld: f.OpenWorld.Value,
		Network:   f.Network.Value, Filesystem: f.Filesystem.Value, Command: f.Command.Value, Trusted: f.Trusted,
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
			Host: t.Host, Executable: t.Executable, Called: t.As, Write: t.Write, Remote: t.Remote, Fault: t.Fault}
		for _, n := range t.Notes {
			all[i].Notes = append(all[i].Notes, string(n))
		}
	}
	return all
}

// oneLine keeps messages of the library, which may quote arguments, to one line of bounded length.
func oneLine(text string) string { return hidden.Cut(strings.Join(strings.Fields(text), " "), 200) }
