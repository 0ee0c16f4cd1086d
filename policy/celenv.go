package policy

import (
	"fmt"

	celchecker "github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/containers"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/stdlib"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"github.com/google/cel-go/parser"
)

// conditions compiles conditions. It is used by one goroutine. The zero value is ready: what compiling takes is made for the
// first condition, because most configs have none, and it is 2 MB.
//
// It puts the library's parts together itself, because package cel, which would do it, links descriptors, templates and
// settings in YAML, of which every hub would hold a part, whether it has a condition or not.
type conditions struct {
	parser      *parser.Parser // nil: nothing is made yet
	checker     *celchecker.Env
	interpreter interpreter.Interpreter
	cost        *interpreter.CostTracker // to be cloned
}

// prepare makes what compiling takes.
func (c *conditions) prepare() error {
	if c.parser != nil {
		return nil
	}
	made, err := assemble()
	if err != nil {
		return fmt.Errorf("prepare conditions: %w", err)
	}
	*c = *made
	return nil
}

func assemble() (*conditions, error) {
	c := &conditions{}
	var err error
	if c.parser, err = parser.NewParser(parser.Macros(parser.AllMacros...), parser.EnableOptionalSyntax(true),
		parser.MaxRecursionDepth(100), parser.ExpressionSizeCodePointLimit(maxCondition)); err != nil {
		return nil, err
	}
	own, err := ownFunctions()
	if err != nil {
		return nil, err
	}
	known, err := newCelTypes()
	if err != nil {
		return nil, err
	}
	if c.checker, err = celchecker.NewEnv(containers.DefaultContainer, known, celchecker.CrossTypeNumericComparisons(true)); err != nil {
		return nil, err
	}
	if err := c.checker.AddIdents(append(variables(), stdlib.Types()...)...); err != nil {
		return nil, err
	}
	dispatcher := interpreter.NewDispatcher()
	for _, f := range append(own, stdlib.Functions()...) {
		bindings, err := f.Bindings()
		if err != nil {
			return nil, err
		}
		if err := dispatcher.Add(bindings...); err != nil {
			return nil, err
		}
		if f.IsDeclarationDisabled() {
			continue
		}
		if err := c.checker.AddFunctions(f); err != nil {
			return nil, err
		}
	}
	c.interpreter = interpreter.NewInterpreter(dispatcher, containers.DefaultContainer, known, known,
		interpreter.NewAttributeFactory(containers.DefaultContainer, known, known))
	c.cost, err = interpreter.NewCostTracker(nil, interpreter.CostTrackerLimit(maxCost))
	return c, err
}

// variables are what conditions see.
func variables() []*decls.VariableDecl {
	object := types.NewMapType(types.StringType, types.DynType)
	return []*decls.VariableDecl{
		decls.NewVariable("arguments", object),
		decls.NewVariable("_meta", object),
		decls.NewVariable("targets", types.NewListType(objectType((*celTarget)(nil)))),
		decls.NewVariable("tool", objectType((*celTool)(nil))),
		decls.NewVariable("actor", objectType((*celActor)(nil))),
		decls.NewVariable("time", types.TimestampType),
		decls.NewVariable("profile", types.StringType),
		decls.NewVariable("cwd", types.StringType),
		decls.NewVariable("optional_type", types.NewTypeTypeWithParam(types.NewOptionalType(types.NewTypeParamType("V")))),
	}
}

// ownFunctions are those besides the standard ones: under, and what makes use of arguments.?name, which may be missing.
func ownFunctions() ([]*decls.FunctionDecl, error) {
	key, value := types.NewTypeParamType("K"), types.NewTypeParamType("V")
	list, object, maybe := types.NewListType(value), types.NewMapType(key, value), types.NewOptionalType(value)
	maybeList, maybeObject := types.NewOptionalType(list), types.NewOptionalType(object)
	args := func(list ...*types.Type) []*types.Type { return list }
	var all []*decls.FunctionDecl
	var failed error
	add := func(name string, options ...decls.FunctionOpt) {
		f, err := decls.NewFunction(name, options...)
		if err != nil && failed == nil {
			failed = err
		}
		all = append(all, f)
	}
	add("under", decls.Overload("under_string_string", args(types.StringType, types.StringType), types.BoolType,
		decls.BinaryBinding(underValues)))
	add("optional.of", decls.Overload("optional_of", args(value), maybe,
		decls.UnaryBinding(func(v ref.Val) ref.Val { return types.OptionalOf(v) })))
	add("optional.none", decls.Overload("optional_none", nil, maybe,
		decls.FunctionBinding(func(...ref.Val) ref.Val { return types.OptionalNone })))
	add("optional.ofNonZeroValue", decls.Overload("optional_ofNonZeroValue", args(value), maybe,
		decls.UnaryBinding(func(v ref.Val) ref.Val {
			if isSet(v) {
				return types.OptionalOf(v)
			}
			return types.OptionalNone
		})))
	add("value", decls.MemberOverload("optional_value", args(maybe), value, decls.UnaryBinding(onOptional((*types.Optional).GetValue))))
	add("hasValue", decls.MemberOverload("optional_hasValue", args(maybe), types.BoolType,
		decls.UnaryBinding(onOptional(func(o *types.Optional) ref.Val { return types.Bool(o.HasValue()) }))))
	add("or", decls.MemberOverload("optional_or_optional", args(maybe, maybe), maybe, decls.BinaryBinding(func(a, b ref.Val) ref.Val {
		return onOptional(func(o *types.Optional) ref.Val {
			if o.HasValue() {
				return o
			}
			return b
		})(a)
	})))
	add("orValue", decls.MemberOverload("optional_orValue_value", args(maybe, value), value, decls.BinaryBinding(func(a, b ref.Val) ref.Val {
		return onOptional(func(o *types.Optional) ref.Val {
			if o.HasValue() {
				return o.GetValue()
			}
			return b
		})(a)
	})))
	// The library evaluates these itself and wants their types only.
	add(operators.OptSelect, decls.Overload("select_optional_field", args(types.DynType, types.StringType), maybe))
	add(operators.OptIndex,
		decls.Overload("list_optindex_optional_int", args(list, types.IntType), maybe),
		decls.Overload("optional_list_optindex_optional_int", args(maybeList, types.IntType), maybe),
		decls.Overload("map_optindex_optional_value", args(object, key), maybe),
		decls.Overload("optional_map_optindex_optional_value", args(maybeObject, key), maybe))
	add(operators.Index,
		decls.Overload("optional_list_index_int", args(maybeList, types.IntType), maybe),
		decls.Overload("optional_map_index_value", args(maybeObject, key), maybe))
	return all, failed
}

// onOptional is f for values that are optional, and an error for others.
func onOptional(f func(*types.Optional) ref.Val) functions.UnaryOp {
	return func(v ref.Val) ref.Val {
		if o, ok := v.(*types.Optional); ok {
			return f(o)
		}
		return types.NewErr("%s is no optional value", v.Type().TypeName())
	}
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
