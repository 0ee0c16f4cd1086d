package hook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// require stops calls for which its expression is not true.
type require struct {
	expression *policy.Expression
	reason     string
}

func (c *checker) require(h *compiled) Hook {
	x, err := c.compiler.Expression(h.Require)
	if err != nil {
		c.fault("require", err.Error(), "")
	}
	return require{x, cmp.Or(h.Reason, "it is required that "+h.Require)}
}

// Run evaluates the expression.
func (r require) Run(ctx context.Context, in *Input) (o Output, err error) {
	if err := ctx.Err(); err != nil {
		return o, err
	}
	holds, err := r.expression.Holds(policy.NewSubject(*in.Request))
	if err == nil && !holds {
		o.Stop = &Stop{r.reason}
	}
	return o, err
}

// addContext adds a text for the model.
type addContext struct{ text string }

// Run says the text.
func (a addContext) Run(ctx context.Context, _ *Input) (Output, error) {
	return Output{Context: []string{a.text}}, ctx.Err()
}

// rewrite changes the arguments, after the call the result.
type rewrite struct{ steps []step }

// step is an operation with its compiled value.
type step struct {
	Operation
	value *policy.Expression
}

func (c *checker) rewrite(h *compiled) Hook {
	var r rewrite
	for i, op := range h.Rewrite {
		s := step{Operation: op}
		key := fmt.Sprintf("rewrite[%d]", i)
		if !strings.HasPrefix(op.Path, "/") {
			c.fault(key+".path", fmt.Sprintf("%q points to no member", op.Path), `write a JSON pointer: "/title"`)
		}
		if op.CEL != "" {
			var err error
			if s.value, err = c.compiler.Expression(op.CEL); err != nil {
				c.fault(key+".cel", err.Error(), "")
			}
		}
		needs := op.Op == "add" || op.Op == "replace" || op.Op == "test"
		if needs && (op.Value == nil) == (op.CEL == "") {
			c.fault(key, op.Op+" needs a value", "write value, or cel with an expression for it")
		}
		r.steps = append(r.steps, s)
	}
	return r
}

// Run applies the patch. Numbers that it does not touch keep their text, and members their order.
func (r rewrite) Run(ctx context.Context, in *Input) (o Output, err error) {
	if err := ctx.Err(); err != nil {
		return o, err
	}
	sub := policy.NewSubject(*in.Request)
	operations := make([]Operation, len(r.steps))
	for i, s := range r.steps {
		operations[i] = s.Operation
		if s.value != nil {
			if operations[i].Value, err = s.value.JSON(sub); err != nil {
				return o, err
			}
		}
	}
	text, err := json.Marshal(operations)
	if err != nil {
		return o, err
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return o, fmt.Errorf("read the patch: %w", err)
	}
	to := in.Request.Input
	if !in.Event.Before() {
		to = in.Result
	}
	if len(to) == 0 {
		return o, nil
	}
	options := jsonpatch.NewApplyOptions()
	options.EscapeHTML = false
	changed, err := patch.ApplyWithOptions(to, options)
	if err != nil {
		return o, fmt.Errorf("apply the patch: %w", err)
	}
	o.put(in, changed)
	return o, nil
}

// put sets what a built-in has made of the arguments, or of the result. Where nothing has changed it says nothing.
func (o *Output) put(in *Input, changed []byte) {
	switch before := in.Event.Before(); {
	case before && !bytes.Equal(changed, bytes.TrimSpace(in.Request.Input)):
		o.Input = changed
	case !before && !bytes.Equal(changed, bytes.TrimSpace(in.Result)):
		o.Result = changed
	}
}

// redact replaces what its patterns match in texts of the arguments, after the call of the result.
type redact struct{ patterns []*regexp.Regexp }

func (c *checker) redact(h *compiled) Hook {
	var r redact
	for i, text := range h.Redact {
		p, err := regexp.Compile(text)
		if err != nil {
			c.fault(fmt.Sprintf("redact[%d]", i), "this is no regular expression", "write one of RE2, as Go has them")
			continue
		}
		r.patterns = append(r.patterns, p)
	}
	return r
}

// Run replaces in every text that stands as a value. Names of members stay.
func (r redact) Run(ctx context.Context, in *Input) (o Output, err error) {
	if err := ctx.Err(); err != nil {
		return o, err
	}
	text := in.Request.Input
	if !in.Event.Before() {
		text = in.Result
	}
	text = bytes.TrimSpace(text)
	o.put(in, r.value(text))
	return o, nil
}

// value replaces in one JSON value. What it does not touch keeps its bytes.
func (r redact) value(raw []byte) []byte {
	if len(raw) == 0 {
		return raw
	}
	switch raw[0] {
	case '{':
		return spliced(raw, func(each func(value []byte)) {
			_ = rawjson.Members(raw, func(m rawjson.Member) bool { each(m.Value); return true })
		}, r.value)
	case '[':
		return spliced(raw, func(each func(value []byte)) {
			_ = rawjson.Elements(raw, func(value []byte) bool { each(value); return true })
		}, r.value)
	case '"':
		text, ok := rawjson.String(raw)
		if !ok {
			return raw
		}
		now := text
		for _, p := range r.patterns {
			now = p.ReplaceAllLiteralString(now, "[redacted]")
		}
		if now != text {
			return rawjson.Quote(now)
		}
	}
	return raw
}

// spliced is raw with each value that stands in it as change returns it. values yields the values,
// each a piece of raw, in order.
func spliced(raw []byte, values func(each func(value []byte)), change func([]byte) []byte) []byte {
	var out []byte
	at := 0
	values(func(value []byte) {
		now := change(value)
		start := cap(raw) - cap(value) // value is a piece of raw
		out = append(append(out, raw[at:start]...), now...)
		at = start + len(value)
	})
	return append(out, raw[at:]...)
}

// does says in a few words what a hook does, for people.
func (h *compiled) does() string {
	switch h.kind {
	case "command":
		return strings.Join(h.Command, " ")
	case "shell":
		return h.Shell
	case "url":
		return "posts the call"
	case "require":
		return h.Require
	case "rewrite":
		return fmt.Sprintf("%d-step JSON Patch", len(h.Rewrite))
	case "redact":
		return strings.Join(h.Redact, " ")
	}
	return h.AddContext
}
