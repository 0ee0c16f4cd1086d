package facts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Config holds the operator's facts about tools. The zero value holds none.
type Config struct {
	Tools []Override `yaml:"tools"`
}

// Override sets facts of the tools that match it. The first override that sets a fact counts for that fact.
type Override struct {
	Match  string   `yaml:"match"` // glob over canonical names: * is any run of characters, dots included, and ? one
	Except []string `yaml:"-"`     // globs over those names that Match does not mean

	Disabled bool `yaml:"-"` // out of use: neither listed nor called

	ReadOnly    *bool `yaml:"read_only"`   // true: also not destructive
	Destructive *bool `yaml:"destructive"` // true: also not read-only
	Idempotent  *bool `yaml:"idempotent"`
	Network     *bool `yaml:"network"`
	Command     *bool `yaml:"command"`

	Concurrency string `yaml:"concurrency"` // safe, by_target or exclusive: see Facts.Concurrency
	Interrupt   string `yaml:"interrupt"`   // cancel or block: see Facts.Interrupt

	// added; "dangerous" makes a tool dangerous, "readonly" and "write" are facts
	Tags []string `yaml:"tags"`

	// Arguments are kinds of arguments by JSON pointer: path, url, host, command, code, resource or none.
	Arguments map[string]string `yaml:"arguments"`

	Sensitive       []string `yaml:"sensitive"`        // added to Facts.Sensitive
	SensitiveResult []string `yaml:"sensitive_result"` // added to Facts.SensitiveResult
}

// Fault is one thing that is wrong with a Config.
type Fault struct {
	Path    string // of keys: tools[2].risk
	Problem string // ends in what to do
}

func (f *Fault) Error() string { return f.Path + ": " + f.Problem }

// Validate reports every fault of c, each as a *Fault, joined; nil where there is none. It changes nothing.
func (c Config) Validate() error {
	var faults []error
	for i, o := range c.Tools {
		at := fmt.Sprintf("tools[%d]", i)
		o.check(func(key, format string, args ...any) {
			faults = append(faults, &Fault{Path: at + "." + key, Problem: fmt.Sprintf(format, args...)})
		})
	}
	return errors.Join(faults...)
}

func (o Override) check(fault func(key, format string, args ...any)) {
	if isTrue(o.ReadOnly) && isTrue(o.Destructive) {
		fault("destructive", "a read-only tool destroys nothing: set only one of read_only and destructive")
	}
	if isTrue(o.ReadOnly) && isTrue(o.Command) {
		fault("command",
			"a tool that runs what its caller writes is not read-only: set only one of read_only and command")
	}
	if slices.Contains(o.Tags, tagReadOnly) || slices.Contains(o.Tags, tagWrite) {
		fault("tags", "readonly and write are facts, not words to add: use read_only")
	}
	oneOf := func(key, value string, allowed []string) {
		if value != "" && !slices.Contains(allowed, value) {
			fault(key, "%q is none of the values that there are: write one of %s", value, strings.Join(allowed, ", "))
		}
	}
	oneOf("concurrency", o.Concurrency, []string{ConcurrencySafe, ConcurrencyByTarget, ConcurrencyExclusive})
	oneOf("interrupt", o.Interrupt, []string{InterruptCancel, InterruptBlock})
	pointers := func(key string, all []string) {
		for i, p := range all {
			if !strings.HasPrefix(p, "/") {
				fault(fmt.Sprintf("%s[%d]", key, i),
					"%q is no JSON pointer: write /name, or /list/*/name for the member of each element", p)
			}
		}
	}
	pointers("sensitive", o.Sensitive)
	pointers("sensitive_result", o.SensitiveResult)
	for i, v := range o.Tags {
		if strings.TrimSpace(v) != v || v == "" {
			fault(fmt.Sprintf("tags[%d]", i), "the tag %q is empty or begins or ends in white space: write a word", v)
		}
	}
	for pointer, kind := range o.Arguments {
		if !strings.HasPrefix(pointer, "/") {
			fault("arguments", "the argument %q is no JSON pointer: write /%s", pointer, pointer)
		}
		oneOf("arguments."+pointer, kind, []string{ArgumentPath, ArgumentURL, ArgumentHost, ArgumentCommand,
			ArgumentCode,
			ArgumentResource, ArgumentNone})
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

// Tags with a meaning.
const (
	tagReadOnly    = "readonly"
	tagWrite       = "write"
	tagUnknown     = "unknown" // nothing shows what it does: taken for a write
	tagDangerous   = "dangerous"
	tagDestructive = "destructive"
	tagNetwork     = "network"
	tagFilesystem  = "filesystem"
	tagCommand     = "command"
	tagBrowser     = "browser"
	tagOpenWorld   = "openworld"
)

// Tags are the tags that the facts of a tool can give it. Operators give tools others besides.
func Tags() []string {
	return []string{tagReadOnly, tagWrite, tagUnknown, tagDangerous, tagDestructive, tagNetwork, tagFilesystem,
		tagCommand, tagBrowser, tagOpenWorld}
}
