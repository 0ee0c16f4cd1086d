package schema

import (
	"encoding/json"
	"strings"
)

// mostChecked bounds the bytes of an output that is checked. Decoded it takes many times its size.
const mostChecked = 1 << 20

// ValidateOutput checks the structured output of a tool, which is JSON. It returns nil where that
// fits. What it says is about an output: nobody can correct that and send it again. An output of
// more than 1 MiB is not checked, and counts as one that does not fit.
func (s *Schema) ValidateOutput(output json.RawMessage) *Invalid {
	if len(output) > mostChecked {
		return refused("is not checked: it is larger than 1 MiB")
	}
	invalid := s.Validate(output)
	if invalid == nil {
		return nil
	}
	for i := range invalid.Problems {
		p := &invalid.Problems[i]
		p.Message, _, _ = strings.Cut(p.Message, "; send ")
	}
	return invalid
}

// OutputSummary is Summary about an output.
func (e *Invalid) OutputSummary() string { return e.summary("structuredContent", "its member") }
