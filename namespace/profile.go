package namespace

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/glob"
)

// toolOverride joins a profile's overrides of one tool. An empty field changes nothing.
type toolOverride struct {
	name, title, description string
}

// newProfile checks a profile, and copies the caller's slices.
func newProfile(p Profile) (*Profile, error) {
	p.Style = cmp.Or(p.Style, StyleAuto)
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("profile %q: %w", p.Name, err)
	}
	p.Servers, p.Include, p.Exclude = slices.Clone(p.Servers), slices.Clone(p.Include), slices.Clone(p.Exclude)
	p.Tools = slices.Clone(p.Tools)
	return &p, nil
}

// givenName matches names that an operator gives. A profile's is a segment of a URL, /mcp/p/NAME,
// and a tool's is one that every client takes once dots are replaced.
var givenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// check returns every fault of the profile, joined; nil if there is none.
func (p Profile) check() error {
	var faults []error
	if !givenName.MatchString(p.Name) {
		faults = append(faults, errors.New("name: must match "+givenName.String()+", as it becomes part of a URL"))
	}
	if err := p.Style.Check(); err != nil {
		faults = append(faults, fmt.Errorf("style: %w", err))
	}
	for _, list := range []struct {
		key      string
		patterns []string
	}{{"servers", p.Servers}, {"include", p.Include}, {"exclude", p.Exclude}} {
		for i, pattern := range list.patterns {
			if err := checkGlob(pattern); err != nil {
				faults = append(faults, fmt.Errorf("%s[%d]: %w", list.key, i, err))
			}
		}
	}
	for i, o := range p.Tools {
		if err := o.check(); err != nil {
			faults = append(faults, fmt.Errorf("tools[%d]: %w", i, err))
		}
	}
	return errors.Join(faults...)
}

// Check reports that s is no style, and which there are.
func (s Style) Check() error {
	switch s {
	case StyleAuto, StyleCanonical, StyleSafe, StyleShort, StyleNative:
		return nil
	}
	return fmt.Errorf("%q is unknown: use one of %s, %s, %s, %s, %s", string(s),
		StyleAuto, StyleCanonical, StyleSafe, StyleShort, StyleNative)
}

func (o Override) check() error {
	if err := checkGlob(o.Match); err != nil {
		return fmt.Errorf("match: %w", err)
	}
	if o.Name != "" && glob.HasWildcard(o.Match) {
		return fmt.Errorf("name: %q would rename every tool that %q matches: write the canonical name of one "+
			"tool as match",
			o.Name, o.Match)
	}
	if o.Name != "" && !givenName.MatchString(o.Name) {
		return fmt.Errorf("name: %q must match %s, which all clients can be served with", o.Name, givenName)
	}
	if o == (Override{Match: o.Match}) {
		return fmt.Errorf("the override of %q changes nothing: set name, title, description or hide", o.Match)
	}
	return nil
}

// LeavesOut says which key of the profile leaves out the tool of that canonical name; "" where none does.
func (p Profile) LeavesOut(server, canonical string) string {
	if !p.offers(server) {
		return fmt.Sprintf("profile %q: servers does not name %s", p.Name, server)
	}
	for _, pattern := range p.Exclude {
		if glob.Match(pattern, canonical) {
			return fmt.Sprintf("profile %q: exclude has %s", p.Name, pattern)
		}
	}
	if len(p.Include) > 0 && !glob.MatchAny(p.Include, canonical) {
		return fmt.Sprintf("profile %q: nothing in include matches it", p.Name)
	}
	for _, o := range p.Tools {
		if o.Hide && glob.Match(o.Match, canonical) {
			return fmt.Sprintf("profile %q: tools hides %s", p.Name, o.Match)
		}
	}
	return ""
}

// offers reports whether the profile takes tools of server.
func (p *Profile) offers(server string) bool {
	return len(p.Servers) == 0 || glob.MatchAny(p.Servers, server)
}

// selects reports whether the profile's patterns let a tool of an offered server through, and returns its overrides.
func (p *Profile) selects(canonical string) (toolOverride, bool) {
	if _, ok := p.selectsPrompt(canonical); !ok {
		return toolOverride{}, false
	}
	var d toolOverride
	for _, o := range p.Tools {
		if !glob.Match(o.Match, canonical) {
			continue
		}
		if o.Hide {
			return toolOverride{}, false
		}
		d.name = cmp.Or(d.name, o.Name)
		d.title = cmp.Or(d.title, o.Title)
		d.description = cmp.Or(d.description, o.Description)
	}
	return d, true
}

// selectsPrompt is selects for prompts: overrides are for tools only.
func (p *Profile) selectsPrompt(canonical string) (toolOverride, bool) {
	return toolOverride{}, (len(p.Include) == 0 || glob.MatchAny(p.Include, canonical)) &&
		!glob.MatchAny(p.Exclude, canonical)
}

// reaches reports whether the profile's patterns leave anything of an origin whose canonical names
// begin with prefix. What has no canonical name (resources, templates, instructions, abilities) is
// shown for origins that are reached.
func (p *Profile) reaches(prefix string) bool {
	for _, pattern := range p.Exclude {
		// One that matches the bare prefix and ends in a star matches whatever follows.
		if strings.HasSuffix(pattern, "*") && glob.Match(pattern, prefix) {
			return false
		}
	}
	return len(p.Include) == 0 || slices.ContainsFunc(p.Include,
		func(pattern string) bool { return glob.CanBegin(pattern, prefix) })
}

// checkGlob reports what is wrong with a pattern of a profile.
func checkGlob(pattern string) error {
	if err := glob.Check(pattern); err != nil {
		return err
	}
	if r, found := findHidden(pattern); found {
		return fmt.Errorf("the pattern %+q holds the invisible character %U: remove it", pattern, r)
	}
	return nil
}
