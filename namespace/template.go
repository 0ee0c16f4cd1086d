package namespace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// template is a URI template of RFC 6570, read in order to tell whether a URI can be its expansion.
//
// It is not the RFC's grammar to the letter, as servers' own matching is not: a value may hold
// every character but those that end the part of the URI in which it stands, encoded or not, and
// the parameters of a query come in any order. Prefix lengths ({var:3}) are not enforced. Whose
// template a URI fits is all that is asked; the server itself sees the URI.
type template struct {
	parts  []part
	prefix string // what every expansion's normal form begins with
	shape  string // equal for templates with the same expansions, and those that look so
}

// part is a literal, or an expression where op is set.
type part struct {
	literal string // in normal form
	op      byte   // 's' for the simple one, otherwise the operator
	names   []string
	explode bool // of any variable
}

// Bounds of what is read and matched; what exceeds them belongs to nobody by template. Work is their product.
const (
	maxTemplate = 4 << 10 // bytes
	maxParts    = 64
	maxSegments = 8        // of a {/list}; a longer one may have any number
	maxMatched  = 16 << 10 // bytes of a URI
)

// parseTemplate reads text. ok is false where it is no template or exceeds the bounds.
func parseTemplate(text string) (t *template, ok bool) {
	if len(text) > maxTemplate {
		return nil, false
	}
	t = &template{}
	inHost := false // whether what comes next still belongs to the host
	for text != "" {
		literal, rest, found := strings.Cut(text, "{")
		if strings.IndexByte(literal, '}') >= 0 || len(t.parts) >= maxParts {
			return nil, false
		}
		if literal != "" {
			if len(t.parts) == 0 {
				literal, inHost = normalHead(literal)
			} else {
				literal, inHost = normalTail(literal, inHost)
			}
			t.parts = append(t.parts, part{literal: literal})
		}
		if !found {
			break
		}
		inner, after, closed := strings.Cut(rest, "}")
		p, good := parseExpression(inner)
		if !closed || !good {
			return nil, false
		}
		t.parts = append(t.parts, p)
		text = after
	}
	if len(t.parts) > 0 && t.parts[0].op == 0 {
		t.prefix = t.parts[0].literal
	}
	t.shape = t.outline()
	return t, true
}

// normalHead is the normal form of the literal with which a template begins: scheme and host in lower case. inHost says
// that it ends within the host.
func normalHead(literal string) (normal string, inHost bool) {
	scheme, authority, path, rest := splitAtParts(literal)
	if scheme == "" {
		return normalText(literal), false
	}
	inHost = authority != "" && path == "" && rest == ""
	user, host := "", authority
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		user, host = host[:at+1], host[at+1:]
	}
	return strings.ToLower(scheme) + normalText(user) + lowerOutside(normalText(host)) + normalText(path) + normalText(rest), inHost
}

// normalTail is the normal form of a later literal, of which the host may go on in the beginning.
func normalTail(literal string, inHost bool) (normal string, stillInHost bool) {
	if !inHost {
		return normalText(literal), false
	}
	end := indexFrom(literal, 0, "/?#")
	return lowerOutside(normalText(literal[:end])) + normalText(literal[end:]), end == len(literal)
}

func parseExpression(inner string) (p part, ok bool) {
	if inner == "" {
		return part{}, false
	}
	p.op = 's'
	if strings.IndexByte("+#./;?&", inner[0]) >= 0 {
		p.op, inner = inner[0], inner[1:]
	}
	for spec := range strings.SplitSeq(inner, ",") {
		name, exploded := strings.CutSuffix(spec, "*")
		name, length, prefixed := strings.Cut(name, ":")
		if n, err := strconv.Atoi(length); prefixed && (err != nil || n < 1 || n > 9999) {
			return part{}, false
		}
		if name == "" || strings.ContainsAny(name, "{}/?#&=+*!@|$ ") {
			return part{}, false
		}
		p.names, p.explode = append(p.names, name), p.explode || exploded
	}
	return p, true
}

// outline writes the template without the names of variables, unless expansions hold them.
func (t *template) outline() string {
	var b strings.Builder
	for _, p := range t.parts {
		if p.op == 0 {
			b.WriteString(lookOf(p.literal))
			continue
		}
		holds := ""
		switch p.op {
		case ';', '?', '&':
			holds = strings.Join(p.names, ",")
		case '/', '.':
			holds = strconv.Itoa(len(p.names))
		}
		if p.explode {
			holds += "*"
		}
		fmt.Fprintf(&b, "{%c%s}", p.op, holds)
	}
	return b.String()
}

// matches reports whether normal can be an expansion of the template, in time that grows with its length times the
// number of parts.
func (t *template) matches(normal string) bool {
	if len(normal) > maxMatched || !strings.HasPrefix(normal, t.prefix) {
		return false
	}
	// at[i] says that the parts so far can end before normal[i].
	at, next := make([]bool, len(normal)+1), make([]bool, len(normal)+1)
	at[0] = true
	for _, p := range t.parts {
		clear(next)
		alive := false
		if p.op == 0 {
			for i := range at {
				if at[i] && strings.HasPrefix(normal[i:], p.literal) {
					next[i+len(p.literal)], alive = true, true
				}
			}
		} else {
			alive = p.step(normal, at, next)
		}
		if !alive {
			return false
		}
		at, next = next, at
	}
	return at[len(normal)]
}

// step enters into next where an expansion of the expression that begins at one of at can end. Every variable may be
// undefined, so all of at are among them.
func (p *part) step(normal string, at, next []bool) (alive bool) {
	for i := range at {
		if at[i] {
			next[i], alive = true, true
		}
	}
	switch p.op {
	case 's':
		run(normal, next, "/?#")
	case '+':
		run(normal, next, "")
	case '#':
		p.value(normal, at, next, "")
	case '.':
		p.value(normal, at, next, "/?#")
	case '/':
		if p.explode || len(p.names) > maxSegments {
			p.value(normal, at, next, "?#")
			break
		}
		for range p.names {
			at = p.value(normal, at, next, "/?#")
		}
	default:
		p.parameters(normal, at, next)
	}
	return alive
}

// value enters into next where a value that begins with the operator and goes up to one of stop can
// end, and returns that.
func (p *part) value(normal string, at, next []bool, stop string) []bool {
	open := started(normal, at, p.op)
	run(normal, open, stop)
	for i := range open {
		next[i] = next[i] || open[i]
	}
	return open
}

// started returns the positions after lead, where that stands at one of at.
func started(normal string, at []bool, lead byte) []bool {
	open := make([]bool, len(at))
	for i := range normal {
		if at[i] && normal[i] == lead {
			open[i+1] = true
		}
	}
	return open
}

// run extends set over all characters up to the next one of stop.
func run(normal string, set []bool, stop string) {
	for i := range len(normal) {
		if set[i] && strings.IndexByte(stop, normal[i]) < 0 {
			set[i+1] = true
		}
	}
}

// parameters enters into next the end of every run of parameters, name or name=value, that begins with the operator.
func (p *part) parameters(normal string, at, next []bool) {
	separator, stop := byte('&'), "&#"
	if p.op == ';' {
		separator, stop = ';', ";/?#"
	}
	open := started(normal, at, p.op) // where a parameter can begin
	end, equals, filled := -1, -1, 0  // what was found last, so that nothing is looked at twice
	for i := range open {
		if !open[i] {
			continue
		}
		if i > end {
			end = indexFrom(normal, i, stop)
			filled = end + 1
		}
		if i > equals {
			equals = indexFrom(normal, i, "=")
		}
		name, from := normal[i:min(equals, end)], end
		if !p.explode && !slices.Contains(p.names, name) {
			continue
		}
		if equals < end {
			from = equals + 1 // a literal may follow the value at once
		}
		for ; filled > from; filled-- {
			next[filled-1] = true
		}
		if end < len(normal) && normal[end] == separator {
			open[end+1] = true
		}
	}
}

// indexFrom returns the index of the first character of any in text, from index i on; len(text) where there is none.
func indexFrom(text string, i int, any string) int {
	if n := strings.IndexAny(text[i:], any); n >= 0 {
		return i + n
	}
	return len(text)
}
