package tool

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// ResultsServer is reserved: no server can have this id.
const ResultsServer = "results"

// ResultURI is the URI of a stored result, or of an artifact.
func ResultURI(id ResultID) string { return "toolhub://" + ResultsServer + "/" + string(id) }

// Strategy is the standard's word for what becomes of a large result.
type Strategy string

// The strategies of the standard, all of them.
const (
	StrategyInline Strategy = "inline" // the caller gets it whole
	// it is stored, and the caller gets a preview and a link (default)
	StrategyPreviewAndPersist Strategy = "preview_and_persist"
	StrategyRefOnly           Strategy = "ref_only" // it is stored, and the caller gets a link
	StrategyRedact            Strategy = "redact"
	StrategyDropWithReason    Strategy = "drop_with_reason" // the caller is told that it is gone, and why
	// the caller gets it whole, and the hub keeps size and digest alone, of small ones, too
	StrategyNeverPersist Strategy = "never_persist"
)

// ResultPersistence is what a decision about a large result says.
type ResultPersistence struct {
	Strategy     Strategy       `json:"strategy"`
	Threshold    map[string]any `json:"threshold,omitempty"`
	OriginalSize int            `json:"original_size_bytes"`
	PreviewSize  int            `json:"preview_size_bytes,omitempty"` // of what the caller got in place of the result
	Persisted    *PersistedRef  `json:"persisted_ref,omitempty"`
	Redaction    RedactionState `json:"redaction_state,omitempty"` // of what is stored; "" in steps: RedactionNone
	Reason       string         `json:"reason,omitempty"`          // why it is not what was asked for
}

// PersistedRef names a stored result, or an artifact.
type PersistedRef struct {
	URI       string `json:"uri"`
	SHA256    string `json:"sha256"`
	Size      int64  `json:"size_bytes"`
	MediaType string `json:"media_type"`

	// Of an artifact alone. Other bytes under a name that the tool has given its caller before are the next version.
	ArtifactID ResultID `json:"artifact_id,omitempty"`
	Name       string   `json:"name,omitempty"`
	Version    int      `json:"version,omitempty"`
}

// Artifact is what a call has made beside its result, or what its result names.
type Artifact struct {
	Name      string
	About     string // what of it is stored, for the caller, as "all of its 100000 bytes"; "" where the result names it
	MediaType string
	Bytes     []byte
	Err       error // why it is not stored; nil where it can be
}

// ResultPersistenceRecord is the standard's tool_result_persistence.
type ResultPersistenceRecord struct {
	Head
	DecisionID   DecisionID   `json:"decision_id"`
	InvocationID InvocationID `json:"invocation_id"`
	ResultID     ResultID     `json:"result_id"`
	ResultPersistence
	CreatedAt time.Time `json:"created_at"`
}

// ResourceContents are the contents of a resource, as MCP has them: text where they are text.
func ResourceContents(uri, mediaType string, raw []byte) json.RawMessage {
	out := rawjson.AppendQuote([]byte(`{"uri":`), uri)
	out = rawjson.AppendQuote(append(out, `,"mimeType":`...), mediaType)
	if IsText(raw) {
		return append(rawjson.AppendQuote(append(slices.Grow(out, len(raw)+len(raw)/8), `,"text":`...), string(raw)), '}')
	}
	out = base64.StdEncoding.AppendEncode(append(out, `,"blob":"`...), raw)
	return append(out, `"}`...)
}

// IsText reports whether raw is a text: UTF-8 without NUL.
func IsText(raw []byte) bool { return utf8.Valid(raw) && bytes.IndexByte(raw, 0) < 0 }

// ResultOf is the id of the one result of an invocation.
func ResultOf(id InvocationID) ResultID {
	return ResultID("res_" + strings.TrimPrefix(string(id), "inv_"))
}

// ArtifactOf is the id of an artifact of an invocation; n counts them from 1.
func ArtifactOf(id InvocationID, n int) ResultID {
	return ResultOf(id) + ResultID("."+strconv.Itoa(n))
}

// inputDigits are how many digits of its digest the id of an input has.
const inputDigits = 16

// InputOf is the id under which an input of an invocation is stored beside results: one that a
// record has by its digest alone.
func InputOf(id InvocationID, digest string) ResultID {
	return ResultID("inp_" + strings.TrimPrefix(string(id), "inv_") + digest[:min(inputDigits, len(digest))])
}

// IsResult reports whether the id is one of a result or an artifact, and not of an input.
func (id ResultID) IsResult() bool { return strings.HasPrefix(string(id), "res_") }

// InvocationOf is the invocation whose result, artifact or input has the id.
func InvocationOf(id ResultID) InvocationID {
	if rest, input := strings.CutPrefix(string(id), "inp_"); input {
		return InvocationID("inv_" + rest[:max(0, len(rest)-inputDigits)])
	}
	rest, _, _ := strings.Cut(strings.TrimPrefix(string(id), "res_"), ".")
	return InvocationID("inv_" + rest)
}

// ResultRule says what becomes of the results of a tool.
type ResultRule struct {
	MaxChars int // characters of a result that passes as it is; 0: no limit
	Strategy Strategy

	Artifacts *TakeIn   // nil: nothing is taken in
	Redact    Redaction // "" is off
}

// Redaction says what becomes of the secrets in a result on its way to the caller. Records never hold them.
type Redaction string

const (
	RedactOff    Redaction = "off"    // the result passes byte for byte, and nobody looks (default)
	RedactDetect Redaction = "detect" // it passes, and record and log say that there are some
	RedactRedact Redaction = "redact" // marks stand in their place, also in what is stored to be read on
	RedactBlock  Redaction = "block"  // it is withheld: the call fails with ClassResultRedacted
)

// TakeIn says what of that which a result names becomes an artifact.
type TakeIn struct {
	Resources bool     // what its resource links name, as the server has it
	Files     []string // files below these directories
}

// Cuts reports whether a caller may get less than the tool's result.
func (r ResultRule) Cuts() bool {
	switch r.Strategy {
	case StrategyPreviewAndPersist, StrategyRefOnly, StrategyDropWithReason:
		return r.MaxChars > 0
	}
	return false
}

// ResultRules are those of a surface. They are immutable.
type ResultRules struct {
	Usual   ResultRule
	ByTool  map[Name]ResultRule // where it is otherwise
	Because string              // where the usual limit comes from, in words

	// Preview is how many characters take the place of a result above the usual limit, where the
	// client itself would show as many; 0: what the hub thinks best.
	Preview int
}

// For returns the rule of a tool.
func (r *ResultRules) For(name Name) ResultRule {
	if rule, ok := r.ByTool[name]; ok {
		return rule
	}
	return r.Usual
}

// Cuts reports whether a caller may get less than the result of some tool.
func (r *ResultRules) Cuts() bool {
	if r == nil {
		return false
	}
	cuts := r.Usual.Cuts()
	for _, rule := range r.ByTool {
		cuts = cuts || rule.Cuts()
	}
	return cuts
}

// WithResults returns s, which is not split yet, with these rules for results. key differs between
// rules that differ. A tool whose results may be cut is listed without its outputSchema: "If an
// output schema is provided … servers MUST provide structured results that conform to this schema".
func (s *Surface) WithResults(r *ResultRules, key string) *Surface {
	out := *s
	out.Results, out.ResultsKey, out.ForClient = r, key, true
	out.record = nil
	out.Digest = Digest([]byte(s.Digest + "\n" + key))
	out.ID = SurfaceID("srf_" + out.Digest[:26])
	listed := append([]Listed(nil), s.Listed...)
	at := make(map[Name]int, len(listed))
	for i := range listed {
		l := &listed[i]
		at[l.Tool.Name] = i
		if l.Tool.OutputSchema != nil && r.For(l.Tool.Name).Cuts() {
			if d, _, err := rawjson.Delete(l.Declaration(), "outputSchema"); err == nil {
				l.Changed = d
			}
		}
	}
	out.Listed, out.names = listed, s.namesIn(listed, at)
	return &out
}
