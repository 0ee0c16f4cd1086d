package policy

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

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
		cel.Variable("targets", cel.ListType(objectType((*celTarget)(nil)))),
		cel.Variable("tool", objectType((*celTool)(nil))),
		cel.Variable("actor", objectType((*celActor)(nil))),
		cel.Variable("time", cel.TimestampType),
		cel.Variable("profile", cel.StringType),
		cel.Variable("cwd", cel.StringType),
		cel.Function("under", cel.Overload("under_string_string", []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType,
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
