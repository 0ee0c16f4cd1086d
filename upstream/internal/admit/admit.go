// Package admit judges what a server lists, element by element, and makes the catalog that clients may see. It opens no
// connection: an Offer goes in, a Listing comes out, and both can be kept for the next start.
package admit

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

// Bounds of a declaration beside settings.Limits.
const (
	maxDeclarationDepth = 200 // clients and the SDK stop between 500 and 1000, for the whole message
	maxNameBytes        = 256
	maxURIBytes         = 8 << 10 // it travels in a header, too
	maxShown            = 80      // of a server's text in a message
)

// Codes of exclusions.
const (
	codeInvalidDeclaration = "invalid_declaration"
	codeInvalidName        = "invalid_name"
	codeDuplicateName      = "duplicate_name"
	codeInvalidSchema      = "invalid_schema"
	codeInvalidHeader      = "invalid_header_annotation"
	codeTooLarge           = "too_large"
)

// admission judges what one server lists, so that nothing in it can break the hub, the SDK or a
// client: many clients lose the whole list over one bad tool.
type admission struct {
	cfg     settings.Server
	server  string // see ServerDigest
	tags    []string
	limited []string // for the log: which limits were hit, and with what effect

	findings []tool.Finding

	// See Offer.Sound. What was admitted as it stands is admitted again, without the checks.
	known map[soundKey]bool // at the last admission; nil if that was by other rules
	sound map[soundKey]bool // now
}

// rules is the version of the checks. Whoever makes a check stricter has to change it: otherwise
// what passed before still passes.
const rules = "3"

func newAdmission(cfg settings.Server, known map[soundKey]bool) *admission {
	a := &admission{cfg: cfg.WithDefaults(), server: ServerDigest(cfg), tags: slices.Clone(cfg.Tags)}
	limits := a.cfg.Limits
	seal := soundKeyOf(lists.Count, sha256.Sum256(
		fmt.Appendf(nil, "%s %d %d %s", rules, limits.ToolSize, limits.SchemaDepth, limits.HiddenText)))
	if known[seal] {
		a.known = known
	}
	a.sound = map[soundKey]bool{seal: true}
	return a
}

// ServerDigest says which server an entry means. Values of secrets are not in it, so that a renewed
// one changes nothing.
func ServerDigest(cfg settings.Server) string {
	text := strings.Join(append([]string{cfg.URL, cfg.Command, cfg.Dir, cfg.Account, cfg.SignIn}, cfg.Args...), "\x00")
	for _, secret := range cfg.Secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return "@" + tool.Digest([]byte(text))
}

// admit judges the elements of l one by one. An element is admitted as it stands, byte for byte but
// for white space between lines; or admitted with a repair that its repairs name; or excluded with
// the reason. raw are the elements of all pages in their order, with their digests; they are not
// changed, and what is admitted aliases them.
func (a *admission) admit(
	l lists.List, raw []json.RawMessage, digests [][sha256.Size]byte,
) (admitted []*candidate, excluded []tool.Exclusion) {
	surplus := max(len(raw)-a.cfg.Limits.Tools, 0)
	raw = raw[:len(raw)-surplus]
	candidates := make([]*candidate, len(raw))
	for i, declaration := range raw {
		candidates[i] = a.read(l, i, declaration, digests[i])
	}
	first := make(map[string]int, len(raw)) // name or URI -> position of the element that is admitted
	for _, c := range candidates {
		findings := len(a.findings)
		switch at := first[c.name]; {
		case c.refused != nil:
		case at > 0:
			c.refused = &refusal{code: codeDuplicateName, twin: "same server", reason: fmt.Sprintf(
				"the server lists another one with this %s, at position %d of its list, which is used: give each "+
					"its own on "+
					"the server",
				l.Key(), at)}
		case a.known[c.key]:
		case l == lists.Tools:
			c.repair(a)
		default:
			a.checkHidden(c)
		}
		if c.refused == nil {
			if len(a.findings) == findings && bytes.Equal(c.declaration, c.raw) {
				a.sound[c.key] = true
			}
			first[c.name] = c.position
			admitted = append(admitted, c)
			continue
		}
		e := a.exclusion(l, c)
		excluded = append(excluded, e)
		if c.refused.code == codeTooLarge {
			a.limited = append(a.limited, e.Tool+" is left out: "+e.Reason)
		}
	}
	if surplus > 0 {
		e := a.surplus(l, surplus)
		excluded = append(excluded, e)
		a.limited = append(a.limited, e.Reason)
	}
	return admitted, excluded
}

// surplus says that n elements of l are over the limit.
func (a *admission) surplus(l lists.List, n int) tool.Exclusion {
	more, fewer, most := "", "fewer tools", a.cfg.Limits.Tools
	if l != lists.Tools {
		more, fewer = " "+l.Noun()+"s", "fewer"
	}
	return tool.Exclusion{
		Tool: fmt.Sprintf("(%d more%s)", n, more), Origin: a.cfg.ID, Code: codeTooLarge,
		Reason: fmt.Sprintf("the server lists %d %ss, of which the hub takes the first %d: list %s",
			most+n, l.Noun(), most, fewer),
	}
}

// candidate is an element that is being judged.
type candidate struct {
	position    int // in the list, from 1
	raw         []byte
	digest      [sha256.Size]byte // of raw
	key         soundKey          // of raw
	name        string
	declaration []byte
	repairs     []tool.Repair
	parts       *parts   // of declaration; nil where they have not been read
	internal    []string // see tool.Tool
	runtime     []byte
	refused     *refusal
}

// parts are the members of a tool's declaration that the hub itself reads, as they are written.
type parts struct{ name, input, output, title, annotations, description []byte }

// partsOf reads the parts of an object in which no member occurs twice.
func partsOf(declaration []byte) *parts {
	p := new(parts)
	_ = rawjson.Members(declaration, func(m rawjson.Member) bool {
		switch {
		case m.Is("name"):
			p.name = m.Value
		case m.Is("inputSchema"):
			p.input = m.Value
		case m.Is("outputSchema"):
			p.output = m.Value
		case m.Is("title"):
			p.title = m.Value
		case m.Is("annotations"):
			p.annotations = m.Value
		case m.Is("description"):
			p.description = m.Value
		}
		return true
	})
	return p
}

// refusal says why a candidate is not admitted.
type refusal struct{ code, reason, twin string }

func (c *candidate) refuse(code, format string, args ...any) {
	if c.refused == nil {
		c.refused = &refusal{code: code, reason: fmt.Sprintf(format, args...)}
	}
}

func (c *candidate) repaired(part, format string, args ...any) {
	c.repairs = append(c.repairs, tool.Repair{Part: part, Reason: fmt.Sprintf(format, args...)})
}

// read checks the element of l at index i as far as its name.
func (a *admission) read(l lists.List, i int, raw json.RawMessage, digest [sha256.Size]byte) *candidate {
	raw = bytes.TrimSpace(raw)
	c := &candidate{position: i + 1, raw: raw, declaration: raw, digest: digest,
		key: soundKeyOf(l, digest)}
	if a.known[c.key] {
		if l == lists.Tools {
			c.parts = partsOf(c.declaration)
			c.readName(l, c.parts.name)
		} else {
			value, _ := rawjson.Get(c.declaration, l.Key())
			c.readName(l, value)
		}
		return c
	}
	if l == lists.Tools && a.flatten(c) {
		a.limited = append(a.limited, fmt.Sprintf("#%d of the list is repaired: %s", c.position, c.repairs[0].Reason))
	}
	a.readDeclaration(c, l)
	return c
}

// readDeclaration makes the checks that are the same for all lists.
func (a *admission) readDeclaration(c *candidate, l lists.List) {
	switch depth := rawjson.Depth(c.declaration); {
	case depth > maxDeclarationDepth:
		c.refuse(codeTooLarge, "its declaration nests %d levels deep, more than %d: flatten it on the server", depth,
			maxDeclarationDepth)
		return
	case !rawjson.Valid(c.declaration) || !rawjson.IsObject(c.declaration):
		c.refuse(codeInvalidDeclaration, "its declaration is not a JSON object: correct it on the server")
		return
	}
	if !utf8.Valid(c.declaration) {
		c.declaration = bytes.ToValidUTF8(c.declaration, []byte("\uFFFD"))
		c.repaired("declaration", "it held bytes that are not UTF-8; U+FFFD stands for them now")
	}
	line, err := rawjson.Line(c.declaration)
	if err != nil {
		c.refuse(codeInvalidDeclaration, "its declaration is not a JSON object: correct it on the server")
		return
	}
	c.declaration = line
	value, _ := rawjson.Get(c.declaration, l.Key())
	c.readName(l, value)
	switch {
	case c.refused != nil:
	case len(c.declaration) > a.cfg.Limits.ToolSize:
		c.refuse(codeTooLarge, "its declaration has %d bytes, more than %s: shorten it on the server",
			len(c.declaration), settings.SizeText(a.cfg.Limits.ToolSize))
	default:
		if key, ok := rawjson.Repeated(c.declaration, bytes.Compare); ok {
			c.refuse(codeInvalidDeclaration,
				"its declaration is ambiguous: member %q occurs twice in one object: correct it "+
					"on the server", hidden.Cut(key, maxShown))
		}
	}
}

// readName reads the value of the member that identifies an element of l.
func (c *candidate) readName(l lists.List, value []byte) {
	key, limit := l.Key(), maxNameBytes
	if l.Kind() == lists.ResourceKind {
		limit = maxURIBytes
	}
	name, ok := rawjson.String(value)
	c.name = name
	switch {
	case value == nil:
		c.refuse(codeInvalidName, "it has no %s: give it one on the server", key)
	case !ok:
		c.refuse(codeInvalidName, "its %s is no string: correct it on the server", key)
	case name == "":
		c.refuse(codeInvalidName, "its %s is empty: give it one on the server", key)
	case len(name) > limit:
		c.refuse(codeInvalidName, "its %s has %d bytes, more than %d: shorten it on the server", key, len(name), limit)
	case strings.ContainsFunc(name, unicode.IsControl):
		c.refuse(codeInvalidName, "its %s holds control characters: rename it on the server", key)
	case strings.ContainsRune(name, utf8.RuneError):
		// Decoding replaced a lone surrogate or a stray byte, so the name could not be sent back as it is.
		c.refuse(codeInvalidName, "its %s is no valid Unicode text: rename it on the server", key)
	}
}

func (a *admission) exclusion(l lists.List, c *candidate) tool.Exclusion {
	e := tool.Exclusion{Origin: a.cfg.ID, Code: c.refused.code, Reason: c.refused.reason}
	if c.refused.twin != "" {
		e.Twin = a.cfg.ID
	}
	switch {
	case c.name == "":
		e.Tool = fmt.Sprintf("#%d", c.position)
	case l != lists.Tools:
		e.Tool = strconv.Quote(hidden.Cut(c.name, maxShown))
	case c.refused.code == codeInvalidName:
		e.Tool = strconv.QuoteToASCII(hidden.Cut(c.name, maxShown))
	default:
		e.Tool = string(tool.MCPName(a.cfg.ID, c.name))
	}
	if l != lists.Tools {
		e.Tool = l.Noun() + " " + e.Tool
	}
	return e
}

// tool returns the tool of an admitted candidate.
func (a *admission) tool(c *candidate) *tool.Tool {
	t := &tool.Tool{
		Name:   tool.MCPName(a.cfg.ID, c.name),
		Server: a.cfg.ID, ServerDigest: a.server,
		Native:      c.name,
		Declaration: c.declaration,
		Tags:        a.tags,
		Repairs:     c.repairs,
		Validate:    tool.Validate(a.cfg.Validate),
	}
	p := c.parts
	if p == nil {
		p = partsOf(c.declaration)
	}
	t.InputSchema, t.OutputSchema = p.input, p.output
	if t.DeclarationDigest = c.digest; !bytes.Equal(c.declaration, c.raw) {
		t.DeclarationDigest = sha256.Sum256(c.declaration)
	}
	t.SchemaDigest = tool.Digest(t.InputSchema)
	if t.OutputSchema != nil {
		t.OutputDigest = tool.Digest(t.OutputSchema)
	}
	if c.runtime != nil {
		t.Internal, t.Runtime, t.RuntimeDigest = c.internal, c.runtime, tool.Digest(c.runtime)
	}
	t.Title, _ = rawjson.String(p.title)
	if t.Title == "" { // MCP's order of precedence: title, annotations.title, name
		t.Title = rawjson.Text(p.annotations, "title")
	}
	t.Description, _ = rawjson.String(p.description)
	return t
}
