package clients

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
)

// schemes are the words that stand before a secret in a header.
const schemes = `(?i:bearer|basic|token|apikey)`

// shellName matches the names that people give variables, and passwords rarely look like.
const shellName = `([A-Z]+|[A-Z][A-Z0-9]*(_[A-Z0-9]+)+)`

var (
	// tokenForm matches tokens by the prefixes that services give them.
	tokenForm = regexp.MustCompile(`\b(gh[pousr]_|github_pat_|glpat-|sk-|sk_live_|rk_live_|xox[abprs]-|` +
		`xapp-|AKIA|AIza|ntn_|secret_|` +
		`lin_api_|figd_|hf_|npm_|pypi-|dop_v1_|tvly-|fc-|pat[A-Za-z0-9]{14}\.)[A-Za-z0-9_.-]{12,}`)
	scheme    = regexp.MustCompile(`^(` + schemes + `\s+)?(.+)$`)
	header    = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_-]*):\s*(.+)$`)
	assigned  = regexp.MustCompile(`^(--?[A-Za-z][A-Za-z0-9_-]*|[A-Za-z][A-Za-z0-9_.]*)=(.+)$`)
	flag      = regexp.MustCompile(`^--?([A-Za-z][A-Za-z0-9_-]*)$`)
	parameter = regexp.MustCompile(`([?&])([^=&#\s]+)=([^&#\s]+)`)
	userInfo  = regexp.MustCompile(`(\b[a-z][a-z0-9+.-]*://)([^/?#@:\s]*:)?([^/?#\s]+)@`)
	quoted    = regexp.MustCompile(`("([A-Za-z0-9_-]+)"\s*:\s*")((?:[^"\\]|\\.)+)"`) // a member of a JSON object
	connected = regexp.MustCompile(`((?:^|[;\s])([A-Za-z][A-Za-z0-9_]*)=)([^;\s]+)`) // a member of a connection string
	// a member of a list, as of JIRA_CUSTOM_HEADERS
	member = regexp.MustCompile(`((?:^|,)\s*([A-Za-z][A-Za-z0-9_-]*)=)([^,;]+)`)
	// the name of an address that is a secret
	webhook = regexp.MustCompile(`(?i)webhook[_-]?ur[il]$`)
	segment = regexp.MustCompile(`/([A-Za-z0-9_-]{20,})`) // of a path

	// plainHeader matches names of headers that hold no secret: of HTTP, of MCP, and of settings of
	// GitHub's and Figma's servers. plainValue matches what is evidently a setting: a switch, a
	// number, a version, a list of words, or an address.
	plainHeader = regexp.MustCompile(`(?i)^(accept(-\w+)?|content-type|user-agent|origin|` +
		`(http-)?referer|mcp-protocol-version|` +
		`x-mcp-(toolsets|tools|exclude-tools|features|readonly|lockdown|insiders)|x-figma-region)$`)
	plainValue = regexp.MustCompile(`(?i)^(true|false|on|off|yes|no|v?[0-9]+([.-][0-9]+)*|` +
		`[a-z_-]+(\s*,\s*[a-z_-]+)+|https?://\S+)$`)
	// shellVariables matches variables as shells have them. Where they stand in the place of a secret,
	// the author meant the variables.
	shellVariables = regexp.MustCompile(`^(\s*(\$` + shellName + `|\$\$\{` + shellName + `\}))+$`)

	// referring matches a reference, and the escape $${, which is none.
	referring = regexp.MustCompile(`\$\$\{|\$\{[^}]*:-\$\{secret:[^}]*\}\}|\$\{[^}]*\}`)
	// forProgram matches a reference that the hub leaves to the program.
	forProgram = regexp.MustCompile(`\$\$\{[A-Za-z_][A-Za-z0-9_]*\}`)
	fallback   = regexp.MustCompile(`(?s)^(\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*):-)(.+)\}$`)
	// aside matches what stands for references while a text is searched; literal what is between them.
	aside   = regexp.MustCompile(`[\x{100000}-\x{10FFFF}]`)
	literal = regexp.MustCompile(`[^\x{100000}-\x{10FFFF}]+`)
)

// leastSecret is the length in bytes from which a text beside references is taken for a secret, and
// one is masked: a shorter one is found in other words, too.
const leastSecret = 6

// leastCode is the length in bytes from which the parameter code of an address is a key, as those
// of Azure Functions, rather than a country's.
const leastCode = 20

func carriesSecret(text string) bool {
	found := false
	c := cutter{move: func(string) string { found = true; return "" }}
	_ = c.within(text)
	return found
}

// isSecretBehind reports whether value is a secret because before, the argument before it, is a
// flag of a secret. Behind --key stands a file, or a key: what it looks like decides.
func isSecretBehind(before, value string) bool {
	m := flag.FindStringSubmatch(before)
	return m != nil && (secretWord(m[1]) || slices.Contains(secret.Find(before+" "+value), value))
}

// secretHeader reports whether the value of a header is taken for a secret: it is, unless its name
// or value shows that it is none.
func secretHeader(name, value string) bool {
	return secretName(name) || !plainHeader.MatchString(name) && !plainValue.MatchString(value)
}

// headerBehind returns the value of the header that arg is because before, the argument before it,
// is a flag of one, such as that of mcp-remote; "" where there is none, or it is no secret.
func headerBehind(before, arg string) string {
	if m := header.FindStringSubmatch(arg); m != nil && (before == "--header" || before == "-H") &&
		secretHeader(m[1], m[2]) {
		return m[2]
	}
	return ""
}

// MoveSecrets replaces the secrets in s by references. It calls keep with each secret and a name;
// keep stores the secret and returns the name that it has given it.
func (s *Server) MoveSecrets(keep func(name, secret string) string) {
	cut := func(key, text string, secret bool) string {
		c := cutter{known: s.secrets, own: s.Env, move: func(secret string) string {
			base := notName.ReplaceAllString(s.Name+"."+key, "-")
			return "${secret:" + keep(strings.TrimLeft(base, ".-"), unescaped(secret)) + "}"
		}}
		if secret {
			return c.whole(text)
		}
		return c.within(text)
	}
	for i, p := range s.Env {
		s.Env[i].Value = cut(p.Name, p.Value, secretName(p.Name))
	}
	for i, p := range s.Headers {
		s.Headers[i].Value = cut(p.Name, p.Value, secretHeader(p.Name, p.Value))
	}
	before := ""
	for i, arg := range s.Args {
		value := headerBehind(before, arg)
		rest := cmp.Or(value, arg)
		s.Args[i] = strings.TrimSuffix(arg, rest) + cut(fmt.Sprint("arg", i+1), rest, value != "" ||
			isSecretBehind(before, arg))
		before = arg
	}
	s.URL = cut("url", s.URL, false)
	s.SignIn.Secret = cut("client_secret", s.SignIn.Secret, true)
}

// unescaped turns the escape $${ of the hub's config back into ${.
func unescaped(text string) string { return strings.ReplaceAll(text, "$${", "${") }

// cutter takes the secrets out of a text. While it searches, one character of a plane that nobody
// uses stands for each reference.
type cutter struct {
	move       func(secret string) string // returns what is written in its place
	references []string
	known      []string // secrets, whatever they look like
	own        []Pair   // variables that the program itself puts in the place of $${NAME}
}

// hide returns what stands for a reference.
func (c *cutter) hide(reference string) string {
	c.references = append(c.references, reference)
	return string(rune(0x100000 + len(c.references) - 1))
}

// search lets cut work on text while its references are hidden.
func (c *cutter) search(text string, cut func(string) string) string {
	if aside.MatchString(text) {
		return text
	}
	text = forProgram.ReplaceAllStringFunc(text, func(reference string) string {
		if slices.ContainsFunc(c.own, func(p Pair) bool { return "$${"+p.Name+"}" == reference }) {
			return c.hide(reference)
		}
		return reference
	})
	text = cut(referring.ReplaceAllStringFunc(text, func(reference string) string {
		if reference == "$${" {
			return reference
		}
		if m := fallback.FindStringSubmatch(reference); m != nil && (secretName(m[2]) || carriesSecret(m[3])) {
			reference = c.withoutDefault(reference)
		}
		return c.hide(reference)
	}))
	return aside.ReplaceAllStringFunc(text, func(hidden string) string { return *c.hidden(hidden) })
}

// hidden returns the reference that a character stands for.
func (c *cutter) hidden(character string) *string {
	r, _ := utf8.DecodeRuneInString(character)
	return &c.references[r-0x100000]
}

// withoutDefault returns a reference whose default, which is a secret, is moved.
func (c *cutter) withoutDefault(reference string) string {
	m := fallback.FindStringSubmatch(reference)
	if m == nil || len(m[3]) < leastSecret || strings.HasPrefix(m[3], "${") {
		return reference
	}
	return m[1] + c.move(m[3]) + "}"
}

// whole returns a value that is a secret without it.
func (c *cutter) whole(value string) string {
	return c.search(value, c.value)
}

// within returns a text without the secrets in it: an argument, an address, or the value of a
// variable whose name does not sound like a secret.
func (c *cutter) within(text string) string {
	return c.search(text, c.text)
}

// value takes out a secret. A scheme before it stays, and so do references in it.
func (c *cutter) value(value string) string {
	m := scheme.FindStringSubmatch(value)
	if m == nil { // it has several lines
		m = []string{"", "", value}
	}
	if !aside.MatchString(m[2]) {
		if m[2] == "" || shellVariables.MatchString(m[2]) {
			return value
		}
		return m[1] + c.hide(c.move(m[2]))
	}
	for _, character := range aside.FindAllString(m[2], -1) {
		*c.hidden(character) = c.withoutDefault(*c.hidden(character))
	}
	return m[1] + literal.ReplaceAllStringFunc(m[2], func(run string) string {
		if len(run) < leastSecret {
			return run
		}
		return c.hide(c.move(run))
	})
}

func (c *cutter) text(text string) string {
	if m := header.FindStringSubmatch(text); m != nil && secretWord(m[1]) {
		return text[:len(text)-len(m[2])] + c.value(m[2])
	}
	if m := assigned.FindStringSubmatch(text); m != nil {
		name := strings.TrimLeft(m[1], "-")
		if secretWord(name) || name == strings.ToUpper(name) && secretName(name) { // a variable's name
			return m[1] + "=" + c.value(m[2])
		}
		if value := headerBehind(m[1], m[2]); value != "" {
			return strings.TrimSuffix(text, value) + c.value(value)
		}
		if m[1][0] == '-' { // as in --env=NAME=SECRET
			return m[1] + "=" + c.text(m[2])
		}
	}
	// named takes the secret out of what is found by a pattern of three parts: what comes before, a name, and a value.
	named := func(pattern *regexp.Regexp, end string) {
		text = pattern.ReplaceAllStringFunc(text, func(found string) string {
			m := pattern.FindStringSubmatch(found)
			if !secretWord(m[2]) {
				return found
			}
			return m[1] + c.value(m[3]) + end
		})
	}
	named(quoted, `"`)
	named(connected, "")
	named(member, "")
	text = userInfo.ReplaceAllStringFunc(text, func(found string) string {
		m := userInfo.FindStringSubmatch(found)
		if m[2] == "" && !strings.HasPrefix(m[1], "http") { // as in ssh://git@host
			return found
		}
		return m[1] + m[2] + c.value(m[3]) + "@"
	})
	if strings.Contains(text, "://") {
		text = parameter.ReplaceAllStringFunc(text, func(found string) string {
			m := parameter.FindStringSubmatch(found)
			isCode := strings.EqualFold(m[2], "code") && len(m[3]) >= leastCode
			if !secretWord(m[2]) && !strings.EqualFold(m[2], "key") && !isCode {
				return found
			}
			return m[1] + m[2] + "=" + c.value(m[3])
		})
		text = segment.ReplaceAllStringFunc(text, func(found string) string {
			if !strings.HasPrefix(text, "http") || !isRandom(found[1:]) {
				return found
			}
			return "/" + c.value(found[1:])
		})
	}
	for _, secret := range append(secret.Find(text), c.known...) {
		if len(secret) >= leastSecret && !aside.MatchString(secret) && strings.Contains(text, secret) {
			text = strings.ReplaceAll(text, secret, c.hide(c.move(secret)))
		}
	}
	return tokenForm.ReplaceAllStringFunc(text, func(token string) string { return c.hide(c.move(token)) })
}

// isRandom reports whether a part of a path looks like a secret rather than like a name: letters of
// both cases, and digits in several places.
func isRandom(part string) bool {
	turns := 0
	for i := 1; i < len(part); i++ {
		if (part[i] <= '9') != (part[i-1] <= '9') {
			turns++
		}
	}
	return turns > 2 && strings.ToLower(part) != part && strings.ToUpper(part) != part
}

// Reveal replaces references to stored secrets by the secrets.
func (s *Server) Reveal(stored map[string]string) {
	reveal := func(text string) string {
		return reference.ReplaceAllStringFunc(text, func(found string) string {
			secret, ok := stored[reference.FindStringSubmatch(found)[1]]
			if !ok {
				return found
			}
			return strings.ReplaceAll(secret, "${", "$${")
		})
	}
	for _, pairs := range [][]Pair{s.Env, s.Headers} {
		for i := range pairs {
			pairs[i].Value = reveal(pairs[i].Value)
		}
	}
	for i, arg := range s.Args {
		s.Args[i] = reveal(arg)
	}
	s.URL, s.SignIn.Secret = reveal(s.URL), reveal(s.SignIn.Secret)
}

var reference = regexp.MustCompile(`\$\{secret:([^}]+)\}`)

// SecretNames returns the names of the stored secrets that a text refers to.
func SecretNames(text string) (names []string) {
	for _, found := range reference.FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	return names
}
