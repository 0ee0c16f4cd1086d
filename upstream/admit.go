package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

// Bounds of a tool beside Limits.
const (
	maxDeclarationDepth = 200 // clients and the SDK stop between 500 and 1000, for the whole message
	maxNameBytes        = 256
	maxURIBytes         = 8 << 10 // it travels in a header, too
)

// Codes of exclusions made by Admit.
const (
	codeInvalidDeclaration = "invalid_declaration"
	codeInvalidName        = "invalid_name"
	codeDuplicateName      = "duplicate_name"
	codeInvalidSchema      = "invalid_schema"
	codeInvalidHeader      = "invalid_header_annotation"
	codeTooLarge           = "too_large"
)

// admit checks what a server listed, tool by tool, so that nothing in it can break the hub, the SDK or a client: one bad
// tool costs many clients the whole list. A tool is admitted as it stands, byte for byte but for white space between
// lines; or admitted with a repair that its Repairs name; or excluded with the reason. raw are the elements of "tools" in
// the order of all pages; they are not kept and not changed.
func (a *admission) admit(raw []json.RawMessage) ([]*tool.Tool, []tool.Exclusion) {
	surplus := 0
	if most := a.limits.Tools; len(raw) > most {
		raw, surplus = raw[:most], len(raw)-most
	}
	candidates := make([]*candidate, len(raw))
	for i, declaration := range raw {
		candidates[i] = a.read(i, declaration)
	}
	refuseTwins(candidates)

	var tools []*tool.Tool
	var excluded []tool.Exclusion
	for _, c := range candidates {
		if c.refused == nil {
			c.repair(a)
		}
		if c.refused == nil {
			tools = append(tools, a.tool(c))
			continue
		}
		excluded = append(excluded, a.exclusion(c))
		if c.refused.code == codeTooLarge {
			a.limited = append(a.limited, a.exclusion(c).Tool+" is left out: "+c.refused.reason)
		}
	}
	if surplus > 0 {
		excluded = append(excluded, tool.Exclusion{
			Tool: fmt.Sprintf("(%d more)", surplus), Origin: a.cfg.ID, Code: codeTooLarge,
			Reason: fmt.Sprintf("the server lists %d tools, of which the hub takes the first %d (%s): list fewer tools, or %s",
				len(raw)+surplus, a.limits.Tools, settings.LimitTools, settings.Raise(settings.LimitTools)),
		})
		a.limited = append(a.limited, excluded[len(excluded)-1].Reason)
	}
	return tools, excluded
}

// admission is what the tools of one server have in common.
type admission struct {
	cfg     ServerConfig
	limits  Limits
	tags    []string
	limited []string // for the log: which limits were hit, and what came of it

	findings []tool.Finding

	// Digests of schemas. Compiling them is most of the work, and what passed at an earlier start passes again.
	known map[string]bool // that passed before
	sound map[string]bool // that have passed now
}

func newAdmission(cfg ServerConfig, known map[string]bool) *admission {
	return &admission{cfg: cfg, limits: cfg.WithDefaults().Limits, tags: slices.Clone(cfg.Tags),
		known: known, sound: make(map[string]bool)}
}

// passes reports whether a schema passes check, which is asked only if it is not known.
func (a *admission) passes(schema []byte, check func() bool) bool {
	digest := tool.Digest(schema)
	if !a.known[digest] && !check() {
		return false
	}
	a.sound[digest] = true
	return true
}

// candidate is a tool on its way in.
type candidate struct {
	position    int // in the list, from 1
	name        string
	declaration []byte
	repairs     []tool.Repair
	refused     *refusal
}

// refusal is why a tool is not admitted.
type refusal struct{ code, reason, twin string }

func (c *candidate) refuse(code, format string, args ...any) {
	if c.refused == nil {
		c.refused = &refusal{code: code, reason: fmt.Sprintf(format, args...)}
	}
}

func (c *candidate) repaired(part, format string, args ...any) {
	c.repairs = append(c.repairs, tool.Repair{Part: part, Reason: fmt.Sprintf(format, args...)})
}

// read takes the tool at index i as far as its name.
func (a *admission) read(i int, raw json.RawMessage) *candidate {
	c := &candidate{position: i + 1, declaration: bytes.Clone(bytes.TrimSpace(raw))}
	if a.flatten(c) {
		a.limited = append(a.limited, fmt.Sprintf("#%d of the list is repaired: %s", c.position, c.repairs[0].Reason))
	}
	a.readAs(c, toolList)
	return c
}

// readAs checks all of an element of l that has nothing to do with what it is.
func (a *admission) readAs(c *candidate, l list) {
	switch depth := rawjson.Depth(c.declaration); {
	case depth > maxDeclarationDepth:
		c.refuse(codeTooLarge, "its declaration nests %d levels deep, more than %d: flatten it on the server", depth, maxDeclarationDepth)
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
	c.readName(l.key(), l.nameLimit())
	switch {
	case c.refused != nil:
	case len(c.declaration) > a.limits.ToolSize:
		c.refuse(codeTooLarge, "its declaration has %d bytes, more than %s (%s): shorten it on the server, or %s",
			len(c.declaration), settings.SizeText(a.limits.ToolSize), settings.LimitToolSize, settings.Raise(settings.LimitToolSize))
	default:
		if key, ok := repeatedKey(c.declaration); ok {
			c.refuse(codeInvalidDeclaration, "its declaration is ambiguous: member %q occurs twice in one object: correct it on the server", shorten(key))
		}
	}
}

// readName takes the name, or URI, which is the member key and has at most limit bytes.
func (c *candidate) readName(key string, limit int) {
	value, ok := rawjson.Get(c.declaration, key)
	if !ok {
		c.refuse(codeInvalidName, "it has no %s: give it one on the server", key)
		return
	}
	name, ok := rawjson.String(value)
	switch {
	case !ok:
		c.refuse(codeInvalidName, "its %s is no string: correct it on the server", key)
	case name == "":
		c.refuse(codeInvalidName, "its %s is empty: give it one on the server", key)
	case len(name) > limit:
		c.name = name
		c.refuse(codeInvalidName, "its %s has %d bytes, more than %d: shorten it on the server", key, len(name), limit)
	case strings.ContainsFunc(name, unicode.IsControl):
		c.name = name
		c.refuse(codeInvalidName, "its %s holds control characters: rename it on the server", key)
	case strings.ContainsRune(name, utf8.RuneError):
		// Decoding replaced a lone surrogate or a stray byte, so the name could not be sent back as it is.
		c.name = name
		c.refuse(codeInvalidName, "its %s is no valid Unicode text: rename it on the server", key)
	default:
		c.name = name
	}
}

// refuseTwins settles which tools may have a name that occurs twice. Identical declarations are one tool; of differing
// ones nobody can tell which of them a call would reach, so all are refused.
func refuseTwins(candidates []*candidate) {
	named := make(map[string][]*candidate, len(candidates))
	for _, c := range candidates {
		if c.name != "" && (c.refused == nil || c.refused.code != codeInvalidName) {
			named[c.name] = append(named[c.name], c)
		}
	}
	for _, twins := range named {
		if len(twins) < 2 {
			continue
		}
		same := !slices.ContainsFunc(twins, func(c *candidate) bool { return !bytes.Equal(c.declaration, twins[0].declaration) })
		for i, c := range twins {
			switch {
			case !same:
				c.refused = &refusal{code: codeDuplicateName, twin: "same server",
					reason: fmt.Sprintf("the server lists different tools of this name, at positions %s of its list: "+
						"rename all but one on the server", positions(twins))}
			case i > 0:
				c.refused = &refusal{code: codeDuplicateName, twin: "same server",
					reason: fmt.Sprintf("the server lists it twice, alike, at positions %s of its list, and the first is used: "+
						"nothing needs to be done", positions(twins))}
			}
		}
	}
}

func positions(twins []*candidate) string {
	const most = 10
	var list []string
	for i, c := range twins {
		if i == most {
			return strings.Join(list, ", ") + fmt.Sprintf(" and %d more", len(twins)-most)
		}
		list = append(list, strconv.Itoa(c.position))
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

func (a *admission) exclusion(c *candidate) tool.Exclusion {
	e := tool.Exclusion{Origin: a.cfg.ID, Code: c.refused.code, Reason: c.refused.reason}
	if c.refused.twin != "" {
		e.Twin = a.cfg.ID
	}
	switch {
	case c.name == "":
		e.Tool = fmt.Sprintf("#%d", c.position)
	case c.refused.code == codeInvalidName:
		e.Tool = strconv.QuoteToASCII(shorten(c.name))
	default:
		e.Tool = string(tool.MCPName(a.cfg.ID, c.name))
	}
	return e
}

// tool builds the tool of an admitted candidate.
func (a *admission) tool(c *candidate) *tool.Tool {
	t := &tool.Tool{
		Name:        tool.MCPName(a.cfg.ID, c.name),
		Server:      a.cfg.ID,
		Native:      c.name,
		Declaration: c.declaration,
		Tags:        a.tags,
		Validate:    tool.Validate(a.cfg.Validate),
		Repairs:     c.repairs,
	}
	t.InputSchema, _ = rawjson.Get(c.declaration, "inputSchema")
	t.OutputSchema, _ = rawjson.Get(c.declaration, "outputSchema")
	t.SchemaDigest = tool.Digest(t.InputSchema)
	t.Title = text(c.declaration, "title")
	if t.Title == "" { // MCP's order of precedence: title, annotations.title, name
		if annotations, ok := rawjson.Get(c.declaration, "annotations"); ok {
			t.Title = text(annotations, "title")
		}
	}
	t.Description = text(c.declaration, "description")
	return t
}

// text is the decoded string member name of object, "" where there is none.
func text(object []byte, name string) string {
	value, _ := rawjson.Get(object, name)
	s, _ := rawjson.String(value)
	return s
}

// repeatedKey finds an object anywhere in text, a valid JSON text, that has a member twice.
func repeatedKey(text []byte) (key string, found bool) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	type level struct {
		keys  map[string]bool // nil in an array
		value bool            // the next token is a member's value
	}
	var levels []level
	for {
		token, err := decoder.Token()
		if err != nil {
			return "", false
		}
		if closing := token == json.Delim('}') || token == json.Delim(']'); closing {
			levels = levels[:len(levels)-1]
			continue
		}
		if len(levels) > 0 {
			if top := &levels[len(levels)-1]; top.keys != nil && !top.value {
				key, _ := token.(string)
				if top.keys[key] {
					return key, true
				}
				top.keys[key], top.value = true, true
				continue
			} else if top.keys != nil {
				top.value = false
			}
		}
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{keys: make(map[string]bool)})
		case json.Delim('['):
			levels = append(levels, level{})
		}
	}
}

// shorten cuts text that a stranger wrote to what a message can hold.
func shorten(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
