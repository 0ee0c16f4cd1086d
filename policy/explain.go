package policy

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// Explanation is a decision with everything that it was made from.
type Explanation struct {
	Decision tool.PermissionDecision `json:"decision"`
	Tool     tool.Name               `json:"tool"`
	Server   string                  `json:"server"`
	Actor    string                  `json:"actor"`
	Profile  string                  `json:"profile,omitempty"`
	Mode     Mode                    `json:"mode"`
	Policy   string                  `json:"policy"` // version
	Tags     []string                `json:"tags,omitempty"`
	Trusted  bool                    `json:"trusted"`
	ReadOnly facts.Fact[bool]        `json:"read_only"`
	Targets  []target.Target         `json:"targets,omitempty"`
	Findings []target.Finding        `json:"findings,omitempty"`
	Rules    []RuleCheck             `json:"rules"` // in the order of sources, then of the file
	Grants   []GrantCheck            `json:"grants,omitempty"`
	// the rule or mode that keeps the tool from the surface
	HiddenBy string `json:"hidden_by,omitempty"`
	// callers have to search the tool first; set by the caller of Explain, who knows the surface
	Deferred  bool   `json:"deferred,omitempty"`
	FoundWith string `json:"-"` // the tool to search it with
}

// RuleCheck is a rule, and whether it matched.
type RuleCheck struct {
	Rule    string        `json:"rule"`
	Place   string        `json:"place,omitempty"`
	Then    tool.Behavior `json:"then"`
	Matched bool          `json:"matched"` // the rule counts, be it because its condition failed
	// the key that does not match: match, server, tags, profile, actor or when; "" if all do
	Mismatch string `json:"mismatch"`
	Error    string `json:"error,omitempty"`
	Decides  bool   `json:"decides"`
}

// GrantCheck is a grant for the tool, and whether it covers the call.
type GrantCheck struct {
	ID      string        `json:"id"`
	Then    tool.Behavior `json:"then"`
	Covers  bool          `json:"covers"`
	Session bool          `json:"session"`
	Scopes  []Scope       `json:"targets,omitempty"`
}

// NamedRule is a rule, and its name in records: the source and the id.
type NamedRule struct {
	Rule
	Ref string
}

// Rules returns the rules in force, in the order of sources, then of the file.
func (e *Engine) Rules() []NamedRule {
	var all []NamedRule
	for _, c := range e.all {
		all = append(all, NamedRule{c.Rule, c.ref})
	}
	return all
}

// Explain is Decide, with a report on every rule, also on those that Decide need not look at.
func (e *Engine) Explain(_ context.Context, r Request) Explanation {
	sub := prepare(&r)
	x := Explanation{
		Tool: r.Tool.Name, Server: r.Tool.Server, Actor: r.Actor.Ref(), Profile: r.Profile,
		Tags: r.Facts.Tags, Trusted: r.Facts.Trusted, ReadOnly: r.Facts.ReadOnly, Targets: shownTargets(r.Targets),
		Findings: slices.Clone(r.Findings),
		Rules:    []RuleCheck{},
	}
	for i := range x.Findings {
		x.Findings[i].Target = x.Findings[i].Target.Shown()
	}
	x.Decision = e.Decide(r)
	x.Mode, x.Policy = e.settings.Mode.Of(r.door()), e.version
	x.HiddenBy, _ = e.Hides(r.Tool, r.Facts, r.Profile, r.Actor)
	deciding := ""
	if refs := x.Decision.RuleRefs; len(refs) > 0 {
		deciding = refs[0]
	}
	for _, c := range e.all {
		l := RuleCheck{Rule: c.ref, Place: c.Place, Then: c.Then, Mismatch: c.mismatch(&r)}
		if l.Mismatch == "" {
			matched, err := c.matches(sub)
			if err != nil {
				l.Error = err.Error()
			}
			if l.Matched = matched || err != nil; !l.Matched {
				l.Mismatch = "when"
			}
		}
		l.Decides = l.Matched && c.ref == deciding
		x.Rules = append(x.Rules, l)
	}
	for _, g := range e.settings.Grants.List() {
		if g.Tool == r.Tool.Name {
			_, session := g.Session()
			x.Grants = append(x.Grants, GrantCheck{g.ID, g.Then, g.covers(&r), session, g.Scopes})
		}
	}
	return x
}

// shownTargets are targets without the secrets in them.
func shownTargets(targets []target.Target) []target.Target {
	var shown []target.Target
	for i := range targets {
		shown = append(shown, targets[i].Shown())
	}
	return shown
}

// WriteText writes the explanation for people. Everything that a stranger could have written is quoted.
func (x *Explanation) WriteText(w io.Writer) error {
	var b strings.Builder
	d := &x.Decision
	fmt.Fprintf(&b, "%s: %s\n", strings.ToUpper(string(d.Behavior)), plainText(fmt.Sprint(d.Reason["message"])))
	fmt.Fprintf(&b, "  decided by  %s", d.Source)
	if len(d.RuleRefs) > 0 {
		fmt.Fprintf(&b, ", %s", strings.Join(d.RuleRefs, ", "))
	}
	fmt.Fprintf(&b, "\n  tool        %s", plainText(string(x.Tool)))
	if x.HiddenBy != "" {
		fmt.Fprintf(&b, " (not shown on the surface: %s)", x.HiddenBy)
	} else if x.Deferred {
		fmt.Fprintf(&b, " (deferred: nothing is decided before its caller has found it with %s)", x.FoundWith)
	}
	fmt.Fprintf(&b, "\n  facts       %s; read-only: %t (%s: %s); origin trusted: %t\n", strings.Join(x.Tags, " "),
		x.ReadOnly.Value, x.ReadOnly.Origin, plainText(x.ReadOnly.Why), x.Trusted)
	fmt.Fprintf(&b, "  caller      %s", plainText(x.Actor))
	if x.Profile != "" {
		fmt.Fprintf(&b, ", profile %s", plainText(x.Profile))
	}
	fmt.Fprintf(&b, "\n  mode        %s", x.Mode)
	if note, ok := d.Reason["mode"].(string); ok {
		fmt.Fprintf(&b, ": %s", note)
	}
	b.WriteString("\n")
	if text, ok := d.Reason["condition_error"].(string); ok {
		fmt.Fprintf(&b, "  error       %s\n", plainText(text))
	}
	if d.BlockedPath != "" {
		fmt.Fprintf(&b, "  blocked     %q\n", d.BlockedPath)
	}
	for _, t := range x.Targets {
		fmt.Fprintf(&b, "  target      %s %q", t.Kind, t.Resolved)
		if t.Fault != "" {
			fmt.Fprintf(&b, " (%s)", plainText(t.Fault))
		}
		b.WriteString("\n")
	}
	for _, f := range x.Findings {
		fmt.Fprintf(&b, "  limit       %s: %s\n", f.Behavior, plainText(f.Reason))
	}
	x.writeRules(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (x *Explanation) writeRules(b *strings.Builder) {
	fmt.Fprintf(b, "rules looked at: %d\n", len(x.Rules))
	for _, l := range x.Rules {
		mark, why := " ", "matches"
		switch {
		case l.Decides:
			mark, why = "*", "decides"
		case l.Mismatch == "when":
			why = "its condition is false"
		case l.Mismatch != "":
			why = "not its " + l.Mismatch
		}
		if l.Error != "" {
			why += "; its condition cannot be evaluated: " + plainText(l.Error)
			if strings.Contains(l.Error, "no such key") {
				why += `; where it may be missing, write arguments.?NAME.orValue("")`
			}
		}
		fmt.Fprintf(b, "%s %-11s %s", mark, l.Then, l.Rule)
		if l.Place != "" {
			fmt.Fprintf(b, " (%s)", l.Place)
		}
		fmt.Fprintf(b, ": %s\n", why)
	}
	for _, g := range x.Grants {
		covers := "does not cover this call"
		if g.Covers {
			covers = "covers this call"
		}
		fmt.Fprintf(b, "  %-11s grant/%s: %s\n", g.Then, g.ID, covers)
	}
}

// plainText keeps text from steering the terminal.
func plainText(text string) string {
	quoted := fmt.Sprintf("%q", text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
