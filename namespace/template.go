package namespace

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// template is a URI template of RFC 6570, read in order to tell whether a URI can be its expansion.
//
// It is not the RFC's grammar to the letter, as servers' own matching is not: a value may hold
// every character but those that end the part of the URI in which it stands, encoded or not, and
// the parameters of a query come in any order. Prefix lengths ({var:3}) are not enforced. Whose
// template a URI fits is all that is asked; the server itself sees the URI.
type template struct {
	parts  []part
	prefix string                // what every expansion's normal form begins with
	shape  string                // equal for templates with the same expansions, and those that look so
	fits   func() *regexp.Regexp // matches the normal form of expansions
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
	maxTemplate = 1 << 10 // bytes
	maxParts    = 32
	maxSegments = 8       // of a {/list}; a longer one may have any number
	maxMatched  = 4 << 10 // bytes of a URI
)

// parseTemplate reads text. ok is false where it is no template or exceeds the bounds.
func parseTemplate(text string) (t *template, ok bool) {
	if len(text) > maxTemplate {
		return nil, false
	}
	t = &template{}
	for text != "" {
		literal, rest, found := strings.Cut(text, "{")
		if strings.IndexByte(literal, '}') >= 0 || len(t.parts) >= maxParts {
			return nil, false
		}
		if literal != "" {
			if len(t.parts) == 0 {
				literal = normalHead(literal)
			} else {
				literal = normalText(literal)
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
	t.fits = sync.OnceValue(t.compile)
	return t, true
}

// normalHead is the normal form of the literal with which a template begins: scheme and host in lower case.
func normalHead(literal string) string {
	scheme, authority, path, rest := splitAtParts(literal)
	if scheme == "" {
		return normalText(literal)
	}
	user, host := "", authority
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		user, host = host[:at+1], host[at+1:]
	}
	return strings.ToLower(scheme) + normalText(user) + lowerOutside(normalText(host)) + normalText(path) +
		normalText(rest)
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

func (t *template) compile() *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)^`)
	for _, p := range t.parts {
		b.WriteString(p.pattern())
	}
	return regexp.MustCompile(b.String() + `$`)
}

// matches reports whether normal can be an expansion of the template, in time that grows with its length times the
// number of parts.
func (t *template) matches(normal string) bool {
	return len(normal) <= maxMatched && strings.HasPrefix(normal, t.prefix) && t.fits().MatchString(normal)
}

// pattern returns the regular expression of what a part can be. Every variable of an expression may be undefined.
func (p *part) pattern() string {
	switch p.op {
	case 0:
		return regexp.QuoteMeta(p.literal)
	case 's':
		return `[^/?#]*`
	case '+':
		return `.*`
	case '#':
		return `(?:#.*)?`
	case '.':
		return `(?:\.[^/?#]*)?`
	case '/':
		if p.explode || len(p.names) > maxSegments {
			return `(?:/[^?#]*)?`
		}
		return fmt.Sprintf(`(?:/[^/?#]*){0,%d}`, len(p.names))
	case ';':
		return `(?:;` + p.parameter(`;/?#`) + `)*`
	case '?':
		one := p.parameter(`&#`)
		return `(?:\?` + one + `(?:&` + one + `)*)?`
	default:
		return `(?:&` + p.parameter(`&#`) + `)*`
	}
}

// parameter returns the regular expression of name or name=value, up to one of stop.
func (p *part) parameter(stop string) string {
	if p.explode {
		return `[^` + stop + `]*`
	}
	names := make([]string, len(p.names))
	for i, name := range p.names {
		names[i] = regexp.QuoteMeta(name)
	}
	return `(?:` + strings.Join(names, `|`) + `)(?:=[^` + stop + `]*)?`
}
