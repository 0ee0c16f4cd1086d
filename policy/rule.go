package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/cel-go/common/types"

	"github.com/mcp-toolhub/mcp-toolhub/internal/glob"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Source is the source of a rule. Sources have no rank: the strictest rule of all of them counts.
// Of two equally strict rules, the record names the one whose source comes first here.
type Source string

const (
	Managed     Source = "managed"      // a file of the machine's administrator
	CommandLine Source = "command_line" // flags of this start
	User        Source = "user"         // the user's configuration
)

// Sources are the sources of rules, in the order in which records name them.
func Sources() []Source { return []Source{Managed, CommandLine, User} }

// Rule decides about the calls that it matches. A rule matches a call if all of its keys match; a
// key that is a list matches if one of its elements does. A rule must have at least one key to
// match by.
type Rule struct {
	ID     string        `yaml:"id"`     // unique within its source; "" becomes the rule's number, from 1
	Match  []string      `yaml:"match"`  // patterns of canonical tool names
	Tags   []string      `yaml:"tags"`   // tags of the tool, by its facts
	Server []string      `yaml:"server"` // patterns of server ids and toolsets
	Actor  []string      `yaml:"actor"`  // patterns of token names; "local" without authentication
	When   string        `yaml:"when"`   // a CEL expression
	Then   tool.Behavior `yaml:"then"`
	Reason string        `yaml:"reason"` // for people, and for the model where the rule denies

	Profile []string `yaml:"profile"` // patterns of profile names

	// EveryTime is for rules that ask: no grant answers the question, and none is offered.
	EveryTime bool `yaml:"every_time"`

	Place string `yaml:"-"` // file:line:column, for people; "" where that is not known
}

// Set is the rules of one source.
type Set struct {
	Source Source
	Rules  []Rule
}

// Problem is one thing that is wrong with a rule.
type Problem struct {
	Rule    int    // index in the list that was checked
	Key     string // "when", "match[1]"; "" for the rule as a whole
	Message string // what is wrong
	Hint    string // what to do; "" where the message says it
}

// Error is key: message; hint.
func (p Problem) Error() string {
	text := p.Message
	if p.Hint != "" {
		text += "; " + p.Hint
	}
	if p.Key != "" {
		text = p.Key + ": " + text
	}
	return text
}

// CheckRules reports every problem of a list of rules: of one source, because ids are unique there.
func CheckRules(rules []Rule) []Problem {
	_, problems := compileRules("", rules, &Compiler{})
	return problems
}

var ruleID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// compileRules checks and compiles.
func compileRules(source Source, rules []Rule, env *Compiler) ([]compiledRule, []Problem) {
	c := checker{env: env, ids: make(map[string]int)}
	list := make([]compiledRule, 0, len(rules))
	for i := range rules {
		c.rule = i
		list = append(list, c.check(source, rules[i]))
	}
	return list, c.problems
}

// compiledRule is a rule, ready to be asked.
type compiledRule struct {
	Rule
	source Source
	ref    string   // source/id, as records name it
	refs   []string // ref alone, for the decisions of this rule: nobody writes to it
	says   string   // the reason, or the name of the rule, for people
	when   *Expression
}

// isStatic reports whether the rule says the same of every call of one caller to a tool.
func (c *compiledRule) isStatic() bool { return c.when == nil || c.when.static }

// names reports whether the rule names this very tool, without a pattern.
func (c *compiledRule) names(name tool.Name) bool { return slices.Contains(c.Match, string(name)) }

type checker struct {
	env      *Compiler
	ids      map[string]int
	rule     int
	problems []Problem
}

func (c *checker) fault(key, message, hint string) {
	c.problems = append(c.problems, Problem{Rule: c.rule, Key: key, Message: message, Hint: hint})
}

func (c *checker) check(source Source, r Rule) compiledRule {
	if r.ID == "" {
		r.ID = fmt.Sprint(c.rule + 1)
	}
	if !ruleID.MatchString(r.ID) {
		c.fault("id", fmt.Sprintf("the id %q is none", r.ID),
			"write letters, digits, dots, dashes and underscores, at most 64")
	} else if _, twice := c.ids[r.ID]; twice {
		c.fault("id", fmt.Sprintf("another rule of this source has the id %q", r.ID), "give each rule its own, or none")
	}
	c.ids[r.ID] = c.rule
	c.patterns("match", r.Match)
	c.patterns("server", r.Server)
	c.patterns("profile", r.Profile)
	c.patterns("actor", r.Actor)
	for i, tag := range r.Tags {
		if tag == "" || strings.ContainsFunc(tag, func(r rune) bool {
			return unicode.IsSpace(r) ||
				!unicode.IsGraphic(r)
		}) {
			c.fault(at("tags", i, r.Tags), fmt.Sprintf("the tag %+q is no word", tag),
				"write a tag as tools show prints it")
		}
	}
	if r.Then == "" {
		c.fault("then", "the rule does not say what happens", "write then: allow, ask, deny or passthrough")
	}
	if r.EveryTime && r.Then != tool.Ask {
		c.fault("every_time", "only a rule that asks can ask every time", "remove every_time, or write then: ask")
	}
	if len(r.Match)+len(r.Tags)+len(r.Server)+len(r.Profile)+len(r.Actor) == 0 && r.When == "" {
		c.fault("", "the rule does not say which calls it matches", `write match: "*" if that is meant to be all`)
	}
	ref := string(source) + "/" + r.ID
	says := r.Reason
	if says == "" {
		says = "rule " + ref + " says " + string(r.Then)
	}
	return compiledRule{Rule: r, source: source, ref: ref, refs: []string{ref}, says: says, when: c.condition(r.When)}
}

func (c *checker) condition(text string) *Expression {
	if text == "" {
		return nil
	}
	e, faults := c.env.compile(text)
	if e != nil && !e.result.IsExactType(types.BoolType) && !e.result.IsExactType(types.DynType) {
		faults = append(faults, fmt.Errorf("the condition is a %s: write an expression that is true or false", e.result))
	}
	for _, err := range faults {
		c.fault("when", err.Error(), "")
	}
	return e
}

func (c *checker) patterns(key string, patterns []string) {
	for i, p := range patterns {
		if err := glob.Check(p); err != nil {
			c.fault(at(key, i, patterns), err.Error(), "")
		}
	}
}

// at is the key of element i; a single element may have been written without a list.
func at(key string, i int, list []string) string {
	if len(list) == 1 {
		return key
	}
	return fmt.Sprintf("%s[%d]", key, i)
}

// mismatch says which key of the rule keeps it from matching, "" where none does. Conditions are not looked at.
func (c *compiledRule) mismatch(r *Request) string {
	switch {
	case len(c.Match) > 0 && !glob.MatchAny(c.Match, string(r.Tool.Name)):
		return "match"
	case len(c.Server) > 0 && !glob.MatchAny(c.Server, r.Tool.Server):
		return "server"
	case len(c.Tags) > 0 && !slices.ContainsFunc(c.Tags, r.Facts.Has):
		return "tags"
	case len(c.Profile) > 0 && !glob.MatchAny(c.Profile, r.Profile):
		return "profile"
	case len(c.Actor) > 0 && !glob.MatchAny(c.Actor, r.Actor.Name):
		return "actor"
	}
	return ""
}

// matches reports whether the rule matches; an error where its condition cannot be evaluated.
func (c *compiledRule) matches(s *Subject) (bool, error) {
	if c.mismatch(s.Request) != "" {
		return false, nil
	}
	if c.when == nil {
		return true, nil
	}
	return c.when.Holds(s)
}

// Rate bounds how often tools are called: Calls within Every, and so many at once where nobody has
// called for that time. The pipeline keeps count.
type Rate struct {
	Match string        // glob over canonical names; "" matches all
	Actor string        // glob over names of callers; "" matches all
	Calls int           // at least 1
	Every time.Duration // more than 0

	// What has a count of its own. Where all are false, there is one for all calls that match.
	PerActor, PerTool, PerServer bool
}
