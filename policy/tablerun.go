package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Run asks e about every call of the table, or the table's own policy where it has one. lookup says what tools are that
// the table does not describe; it may be nil where the table describes all, and e where it has a policy.
func (t *Table) Run(e *Engine, lookup Lookup) ([]TestResult, error) {
	if t.Settings != nil {
		own, err := Compile(*t.Settings)
		if err != nil {
			return nil, err
		}
		e = own
	}
	if e == nil {
		return nil, errors.New("run table: there is no policy: write policy: in the table, or configure one")
	}
	base := e.state.Load()
	results := make([]TestResult, 0, len(t.Calls))
	for _, c := range t.Calls {
		results = append(results, t.run(base, c, lookup))
	}
	return results, nil
}

func (t *Table) run(s *state, c TestCall, lookup Lookup) TestResult {
	result := TestResult{Call: c, Name: c.Name, Place: c.Place, Want: c.Want}
	if result.Name == "" {
		result.Name = string(c.Tool) + " " + string(c.Request.Input)
	}
	r := c.Request
	if own := t.tools[c.Tool]; own != nil {
		r.Tool, r.Facts = own.tool, own.facts
	} else if lookup == nil {
		result.Problem = fmt.Sprintf("the tool %q is unknown: describe it under tools:", string(c.Tool))
		return result
	} else if err := lookup(c.Tool, &r); err != nil {
		result.Problem = err.Error()
		return result
	}
	if c.targets {
		r.Targets = c.Request.Targets
	}
	if len(c.Request.Findings) > 0 {
		r.Findings = c.Request.Findings
	}
	if c.Mode != "" {
		other := *s
		other.settings.Mode = c.Mode
		s = &other
	}
	d := s.decide(&r)
	result.Decision = d
	by := ""
	if len(d.RuleRefs) > 0 {
		by = d.RuleRefs[0]
	}
	switch {
	case d.Behavior != c.Want:
		result.Problem = fmt.Sprintf("want %s, got %s by %s", c.Want, d.Behavior, strings.TrimSpace(d.Source+" "+by))
	case c.Rule != "" && c.Rule != by:
		result.Problem = fmt.Sprintf("%s as wanted, but by %s and not %s", c.Want, strings.TrimSpace(d.Source+" "+by), c.Rule)
	case c.Source != "" && c.Source != d.Source:
		result.Problem = fmt.Sprintf("%s as wanted, but from %s and not %s", c.Want, d.Source, c.Source)
	}
	result.Passed = result.Problem == ""
	return result
}

// WriteResults writes what came of a table for people: what failed, with its reason, and how many calls passed. It returns
// how many failed.
func WriteResults(w io.Writer, results []TestResult) (failed int, err error) {
	var b strings.Builder
	for _, r := range results {
		if r.Passed {
			continue
		}
		failed++
		fmt.Fprintf(&b, "FAIL %s: %s: %s\n", r.Place, plainText(r.Name), plainText(r.Problem))
		if message, ok := r.Decision.Reason["message"].(string); ok {
			fmt.Fprintf(&b, "     %s\n", plainText(message))
		}
	}
	fmt.Fprintf(&b, "%d of %d calls as wanted\n", len(results)-failed, len(results))
	_, err = io.WriteString(w, b.String())
	return failed, err
}

// WriteResultsJSON writes one JSON object for each call.
func WriteResultsJSON(w io.Writer, results []TestResult) error {
	encoder := json.NewEncoder(w)
	for _, r := range results {
		if err := encoder.Encode(r); err != nil {
			return err
		}
	}
	return nil
}
