package clients

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// masked stands for a secret.
const masked = "[masked]"

var (
	// pointers matches references, with a scheme before them. One with a default that is no
	// reference holds a value, and is not matched.
	pointers = regexp.MustCompile(`(^|[^$])(?:(?:` + schemes +
		`\s+)?\$\{(?:[^}:]|:[^}-])*(?::-\$\{secret:[^}]*\})?\})+`)
	schemeWord = regexp.MustCompile(`^` + schemes + `\s+`)
)

// Mask replaces secrets in a text that people will see, such as the difference between two states
// of a file: those that the trees hold, which are what the file says in each state, and what looks
// like one in comments, which no tree has. References stay.
func Mask(text string, trees ...*textfile.Node) string {
	var all []string
	for _, tree := range trees {
		all = secretTexts(tree, "", false, all)
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	for _, one := range all {
		text = strings.ReplaceAll(text, one, masked)
	}
	var b strings.Builder
	from := 0
	for _, found := range append(pointers.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		b.WriteString(secret.Text(text[from:found[0]], false) + text[found[0]:found[1]])
		from = found[1]
	}
	return b.String()
}

// Mask replaces secrets in a text about the plan: those of the client's file, and the token of the hub.
func (p *Plan) Mask(text string) string { return Mask(text, p.trees...) }

// secretTexts appends to all the texts below n that may be secrets: variables, headers that are not known to be
// none, and values whose key sounds like a secret.
func secretTexts(n *textfile.Node, key string, secret bool, all []string) []string {
	secret = secret || secretName(key)
	switch key {
	case "env", "envs", "environment":
		secret = true
	}
	if own := ownText(n); len(own) >= leastSecret && (secret || carriesSecret(own)) {
		for _, text := range []string{n.Text, strings.Trim(string(n.Source), `"`)} {
			for line := range strings.Lines(schemeWord.ReplaceAllString(text, "")) {
				if line = strings.TrimSpace(line); len(line) >= leastSecret {
					// as formats quote it
					all = append(all, line, strings.Trim(strconv.Quote(line), `"`), strings.ReplaceAll(line, "'", "''"))
				}
			}
		}
	}
	for _, m := range n.Members {
		name := m.Key
		if strings.HasSuffix(strings.ToLower(key), "servers") { // a server called auth0 has no more secrets than others
			name = ""
		}
		all = secretTexts(m.Value, name, secret || isHeaders(key) && secretHeader(name, m.Value.Text), all)
	}
	for i, item := range n.Items {
		all = secretTexts(item, "", secret || i > 0 && (isSecretBehind(n.Items[i-1].Text, item.Text) ||
			headerBehind(n.Items[i-1].Text, ownText(item)) != ""), all)
	}
	return all
}

// ownText returns the text of n without the references in it.
func ownText(n *textfile.Node) string {
	return strings.TrimSpace(pointers.ReplaceAllString(n.Text, "$1"))
}

// isHeaders reports whether a key of a file stands above headers.
func isHeaders(key string) bool { return key == "headers" || key == "http_headers" }

// secretName reports whether a variable, a header or a key of a file usually holds a secret.
func secretName(name string) bool { return secret.Variable(name) }

// secretWord is as sure, and holds for flags, too: --max-tokens is none.
func secretWord(name string) bool { return secret.Parameter(name) || webhook.MatchString(name) }
