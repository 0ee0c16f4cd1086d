package clients

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// schemes are the words that stand before a secret in a header.
const schemes = `(?i:bearer|basic|token|apikey)`

var (
	// tokenForm matches tokens by the prefixes that services give them.
	tokenForm = regexp.MustCompile(`\b(gh[pousr]_|github_pat_|glpat-|sk-|sk_live_|rk_live_|xox[abprs]-|xapp-|AKIA|AIza|ntn_|secret_|` +
		`lin_api_|figd_|hf_|npm_|pypi-|dop_v1_|tvly-|fc-|pat[A-Za-z0-9]{14}\.)[A-Za-z0-9_.-]{12,}`)
	scheme    = regexp.MustCompile(`^(` + schemes + `\s+)?(.+)$`)
	header    = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9-]*):\s*(.+)$`)
	assigned  = regexp.MustCompile(`^(--?[A-Za-z][A-Za-z0-9_-]*|[A-Z][A-Z0-9_]*)=(.+)$`)
	flag      = regexp.MustCompile(`^--?([A-Za-z][A-Za-z0-9_-]*)$`)
	parameter = regexp.MustCompile(`([?&])([^=&#]+)=([^&#]+)`)
	userInfo  = regexp.MustCompile(`^([a-z][a-z0-9+.-]*://)([^/@:]*:)([^/@]+)@`)
)

func carriesSecret(text string) bool {
	found := false
	_ = secretsIn(text, func(string) string { found = true; return "" })
	return found
}

// isSecretFlag reports whether text is a flag whose value, the next argument, is a secret.
func isSecretFlag(text string) bool {
	m := flag.FindStringSubmatch(text)
	return m != nil && facts.SecretParameter(m[1])
}

// MoveSecrets replaces the secrets in s by references. It calls keep with each secret and a name; keep stores the secret and returns
// the name that it has given it.
func (s *Server) MoveSecrets(keep func(name, secret string) string) {
	move := func(key string) func(string) string {
		return func(secret string) string {
			base := notName.ReplaceAllString(s.Name+"."+key, "-")
			return "${secret:" + keep(strings.TrimLeft(base, ".-"), unescaped(secret)) + "}"
		}
	}
	whole := func(key, value string) string {
		if value == "" || strings.Contains(strings.ReplaceAll(value, "$${", ""), "${") {
			return value
		}
		m := scheme.FindStringSubmatch(value)
		if m == nil {
			return move(key)(value)
		}
		return m[1] + move(key)(m[2])
	}
	for _, pairs := range [][]Pair{s.Env, s.Headers} {
		for i, p := range pairs {
			if secretName(p.Name) {
				pairs[i].Value = whole(p.Name, p.Value)
			} else {
				pairs[i].Value = secretsIn(p.Value, move(p.Name))
			}
		}
	}
	for i, arg := range s.Args {
		key := fmt.Sprint("arg", i+1)
		if i > 0 && isSecretFlag(s.Args[i-1]) {
			s.Args[i] = whole(key, arg)
		} else {
			s.Args[i] = secretsIn(arg, move(key))
		}
	}
	s.URL = secretsIn(s.URL, move("url"))
	s.SignIn.Secret = whole("client_secret", s.SignIn.Secret)
}

// unescaped turns the escape $${ of the hub's config back into ${.
func unescaped(text string) string { return strings.ReplaceAll(text, "$${", "${") }

// secretsIn replaces the secrets in an argument, in an address, or in the value of a variable whose name does not sound like a secret.
func secretsIn(text string, move func(string) string) string {
	if strings.Contains(text, "${") {
		return text
	}
	if m := header.FindStringSubmatch(text); m != nil && !strings.Contains(m[1], "//") && facts.SecretParameter(m[1]) {
		value := scheme.FindStringSubmatch(m[2])
		return text[:len(text)-len(value[2])] + move(value[2])
	}
	if m := assigned.FindStringSubmatch(text); m != nil && facts.SecretParameter(strings.TrimLeft(m[1], "-")) {
		return m[1] + "=" + move(m[2])
	}
	if m := userInfo.FindStringSubmatch(text); m != nil {
		text = m[1] + m[2] + move(m[3]) + text[len(m[0])-1:]
	}
	if strings.Contains(text, "://") {
		text = parameter.ReplaceAllStringFunc(text, func(found string) string {
			m := parameter.FindStringSubmatch(found)
			if !facts.SecretParameter(m[2]) {
				return found
			}
			return m[1] + m[2] + "=" + move(m[3])
		})
	}
	if strings.Contains(text, "${") {
		return text
	}
	return tokenForm.ReplaceAllStringFunc(text, move)
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
