package schema

import (
	"encoding/json"
	"errors"
	"strings"
)

// mostDecoded bounds the bytes of an output that is decoded to be checked. Decoded it takes many times its size.
const mostDecoded = 256 << 10

// ValidateOutput checks the structured output of a tool, which is JSON. Its error is an *Invalid, in words about an output: nobody can
// correct that and send it again. A long output that only the library can check counts as one that does not fit.
func (s *Schema) ValidateOutput(output json.RawMessage) error {
	var err error
	if len(output) <= mostDecoded {
		err = s.Validate(output)
	} else if !s.accepts(output) {
		err = refused("cannot be checked: it is larger than 256 KiB, and does not fit as far as can be told without decoding it")
	}
	invalid, ok := errors.AsType[*Invalid](err)
	if !ok {
		return err
	}
	for i := range invalid.Problems {
		p := &invalid.Problems[i]
		p.Message, _, _ = strings.Cut(p.Message, "; send ")
	}
	return invalid
}

// OutputSummary is Summary about an output.
func (e *Invalid) OutputSummary() string { return e.summary("structuredContent", "its member") }
