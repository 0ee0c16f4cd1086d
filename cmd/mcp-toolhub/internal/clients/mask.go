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

// Mask takes the secrets of the client's file, and that of h, out of a text for people, such as a difference.
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

// secretTexts adds the texts of a value that may be secrets: variables, headers, and whatever is called like one.
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
