package gate

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// aimMethod finds the targets of a request that is no tools/call: see tool.MethodOf. Its params are
// the arguments. An address among them reaches the network, as an argument of a tool would that is
// one.
func (g *Gate) aimMethod(ctx context.Context, r *policy.Request, plan *target.Plan, root target.Root) (err error) {
	rest, uri := r.Input, ""
	switch r.Tool.Native {
	case "resources/read", "resources/subscribe":
		uri = rawjson.Text(rest, "uri")
		rest, _, err = rawjson.Delete(rest, "uri")
	case complete:
		ref, _ := rawjson.Get(rest, "ref")
		rest, uri = completed(rest, rawjson.Text(ref, "uri"))
	}
	if err != nil {
		return err
	}
	if uri != "" {
		targets, inside := target.OfURI("/uri", uri, root)
		r.Targets = append(targets, slices.DeleteFunc(inside,
			func(t target.Target) bool { return !g.limits.Guards(&t) })...)
	}
	more, err := plan.Resolve(ctx, rest, root)
	r.Targets = append(r.Targets, more...)
	if r.Facts.ReadOnly.Value && r.Tool.Native != complete &&
		slices.ContainsFunc(r.Targets, func(t target.Target) bool { return t.Host != "" }) {
		f := *r.Facts
		f.Network = facts.Fact[bool]{Value: true, Origin: facts.Inferred, Why: "an address is among its params"}
		f.Tags = append(slices.Clip(f.Tags), "network")
		slices.Sort(f.Tags)
		r.Facts = &f
	}
	return err
}

// completed returns the values that a completion is about, as arguments, and its URI template with the values in it.
func completed(params json.RawMessage, template string) (arguments json.RawMessage, uri string) {
	argument, _ := rawjson.Get(params, "argument")
	known, _ := rawjson.Get(params, "context")
	name, value := rawjson.Text(argument, "name"), rawjson.Quote(rawjson.Text(argument, "value"))
	values, err := rawjson.Set(rawjson.GetObject(known, "arguments"), name, value)
	if err != nil {
		return params, template // cannot be: it is an object
	}
	var expressions []string
	_ = rawjson.Members(values, func(m rawjson.Member) bool { // the last one of a name counts
		name := m.Name()
		value, _ := rawjson.String(m.Value)
		one := []string{"{" + name + "}", value, "{+" + name + "}", value, "{/" + name + "}", "/" + value}
		expressions = append(one, expressions...)
		return true
	})
	uri = strings.NewReplacer(expressions...).Replace(template) // each once: a value with braces in it is no expression
	return append(rawjson.AppendMember([]byte("{"), "arguments", values), '}'), uri
}

const complete = "completion/complete" // which asks a server for names, and not for what they name
