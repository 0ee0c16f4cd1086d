package clients

import (
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// masked stands for a secret.
const masked = "[masked]"

// Mask replaces secrets in a text that people will see, such as a difference: the secrets of the client's file, and the token of h.
func (p *Plan) Mask(text string, h Hub) string {
	var all []string
	if h.Token != "" {
		all = append(all, h.Token)
	}
	for _, tree := range p.trees {
		all = secretTexts(tree, "", false, all)
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range all {
		text = strings.ReplaceAll(text, secret, masked)
	}
	return text
}

// secretTexts appends to all the texts below n that may be secrets: variables, headers, and values whose key sounds like a secret.
func secretTexts(n *textfile.Node, key string, secret bool, all []string) []string {
	const least = 6 // a shorter text is found in other words
	secret = secret || secretName(key)
	switch key {
	case "env", "envs", "environment", "headers", "http_headers":
		secret = true
	}
	if n.Kind == textfile.Text && len(n.Text) >= least && (secret || carriesSecret(n.Text)) {
		all = append(all, n.Text)
	}
	for _, m := range n.Members {
		all = secretTexts(m.Value, m.Key, secret, all)
	}
	for i, item := range n.Items {
		follows := i > 0 && isSecretFlag(n.Items[i-1].Text)
		all = secretTexts(item, "", secret || follows, all)
	}
	return all
}

func secretName(name string) bool { return command.Secret(name) || facts.SecretParameter(name) }
