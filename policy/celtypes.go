package policy

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// What conditions see. The names of the types stand in error messages of the library.
type (
	// celTool is the variable tool.
	celTool struct {
		Name, Server, Native                         string
		Tags                                         []string
		Risk, Kind, Lifecycle                        string
		Access, WriteEffects                         []string
		ReadOnly, Destructive, Idempotent, OpenWorld bool
		Network, Filesystem, Command, Trusted        bool
	}

	// celActor is the variable actor.
	celActor struct{ Name, Door, Session, Client, ClientVersion string }

	// celTarget is one of the variable targets.
	celTarget struct {
		Kind, Argument, Given, Resolved, Host, Executable, Fault string
		Write, Remote                                            bool
	}
)

// celRecord is what a condition sees as an object. Fields are found by a switch and not by reflection, which took a good
// part of a decision.
type celRecord interface {
	typeName() string
	field(name string) ref.Val // nil: there is none
}

func (*celTool) typeName() string { return "policy.celTool" }

func (t *celTool) field(name string) ref.Val {
	switch name {
	case "name":
		return types.String(t.Name)
	case "server":
		return types.String(t.Server)
	case "native":
		return types.String(t.Native)
	case "tags":
		return texts(t.Tags)
	case "risk":
		return types.String(t.Risk)
	case "kind":
		return types.String(t.Kind)
	case "lifecycle":
		return types.String(t.Lifecycle)
	case "access":
		return texts(t.Access)
	case "write_effects":
		return texts(t.WriteEffects)
	case "read_only":
		return types.Bool(t.ReadOnly)
	case "destructive":
		return types.Bool(t.Destructive)
	case "idempotent":
		return types.Bool(t.Idempotent)
	case "open_world":
		return types.Bool(t.OpenWorld)
	case "network":
		return types.Bool(t.Network)
	case "filesystem":
		return types.Bool(t.Filesystem)
	case "command":
		return types.Bool(t.Command)
	case "trusted":
		return types.Bool(t.Trusted)
	}
	return nil
}

func (*celActor) typeName() string { return "policy.celActor" }

func (a *celActor) field(name string) ref.Val {
	switch name {
	case "name":
		return types.String(a.Name)
	case "door":
		return types.String(a.Door)
	case "session":
		return types.String(a.Session)
	case "client":
		return types.String(a.Client)
	case "client_version":
		return types.String(a.ClientVersion)
	}
	return nil
}

func (*celTarget) typeName() string { return "policy.celTarget" }

func (t *celTarget) field(name string) ref.Val {
	switch name {
	case "kind":
		return types.String(t.Kind)
	case "argument":
		return types.String(t.Argument)
	case "given":
		return types.String(t.Given)
	case "resolved":
		return types.String(t.Resolved)
	case "host":
		return types.String(t.Host)
	case "executable":
		return types.String(t.Executable)
	case "write":
		return types.Bool(t.Write)
	case "remote":
		return types.Bool(t.Remote)
	case "fault":
		return types.String(t.Fault)
	}
	return nil
}

func texts(list []string) ref.Val { return types.NewStringList(types.DefaultTypeAdapter, list) }

// celObject makes a record a value of the library.
type celObject struct{ celRecord }

var (
	_ traits.Indexer     = celObject{}
	_ traits.FieldTester = celObject{}
)

// ConvertToNative is part of the library's interface. Nothing wants a record as anything else.
func (o celObject) ConvertToNative(to reflect.Type) (any, error) {
	return nil, fmt.Errorf("%s is no %s", o.typeName(), to)
}

// ConvertToType is part of the library's interface: type(x), and casts, which there are none of.
func (o celObject) ConvertToType(to ref.Type) ref.Val {
	switch to.TypeName() {
	case types.TypeType.TypeName():
		return objectType(o.celRecord)
	case o.typeName():
		return o
	}
	return types.NewErr("%s is no %s", o.typeName(), to.TypeName())
}

// Equal is part of the library's interface: by content.
func (o celObject) Equal(other ref.Val) ref.Val {
	x, ok := other.(celObject)
	return types.Bool(ok && reflect.DeepEqual(o.celRecord, x.celRecord))
}

// Type is part of the library's interface.
func (o celObject) Type() ref.Type { return objectType(o.celRecord) }

// Value is part of the library's interface.
func (o celObject) Value() any { return o.celRecord }

// Get is part of the library's interface: a field, where the type is known when the condition runs only.
func (o celObject) Get(name ref.Val) ref.Val {
	if text, ok := name.(types.String); ok {
		if v := o.field(string(text)); v != nil {
			return v
		}
	}
	return types.NewErr("no such field '%v'", name)
}

// IsSet is part of the library's interface: what has(tool.risk) means.
func (o celObject) IsSet(name ref.Val) ref.Val {
	v := o.Get(name)
	if types.IsError(v) {
		return v
	}
	return types.Bool(isSet(v))
}

// isSet reports whether a field has a value that says something.
func isSet(v ref.Val) bool {
	zero, ok := v.(traits.Zeroer)
	return !ok || !zero.IsZeroValue()
}

func objectType(r celRecord) *types.Type {
	return types.NewObjectType(r.typeName(), traits.FieldTesterType, traits.IndexerType)
}

// celTypes tells the library of the types of records, besides those that every condition has.
type celTypes struct{ *types.Registry }

func newCelTypes() (celTypes, error) {
	registry := types.NewEmptyRegistry()
	return celTypes{registry}, registry.RegisterType(types.BoolType, types.BytesType, types.DoubleType, types.DurationType, types.IntType,
		types.ListType, types.MapType, types.NullType, types.StringType, types.TimestampType, types.TypeType, types.UintType,
		types.OptionalType)
}

func recordOf(typeName string) celRecord {
	for _, r := range []celRecord{(*celTool)(nil), (*celActor)(nil), (*celTarget)(nil)} {
		if r.typeName() == typeName {
			return reflect.New(reflect.TypeOf(r).Elem()).Interface().(celRecord)
		}
	}
	return nil
}

// FindStructType is part of the library's interface.
func (t celTypes) FindStructType(name string) (*types.Type, bool) {
	if r := recordOf(name); r != nil {
		return types.NewTypeTypeWithParam(objectType(r)), true
	}
	return nil, false
}

// FindStructFieldNames is part of the library's interface. It serves messages of the library that nobody sees here.
func (celTypes) FindStructFieldNames(string) ([]string, bool) { return nil, false }

// FindStructFieldType is part of the library's interface.
func (t celTypes) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	r := recordOf(name)
	if r == nil {
		return nil, false
	}
	zero := r.field(field)
	if zero == nil {
		return nil, false
	}
	kind := zero.Type().(*types.Type)
	if _, isList := zero.(traits.Lister); isList {
		kind = types.NewListType(types.StringType)
	}
	return &types.FieldType{
		Type:    kind,
		IsSet:   func(object any) bool { return isSet(object.(celRecord).field(field)) },
		GetFrom: func(object any) (any, error) { return object.(celRecord).field(field), nil },
	}, true
}

// NewValue is part of the library's interface. Conditions make no records.
func (celTypes) NewValue(name string, _ map[string]ref.Val) ref.Val {
	return types.NewErr("conditions make no %s", name)
}
