package config

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// Kinds of credentials, each before a name.
const (
	fromEnv    = "env:"    // a variable of the hub's environment
	fromFile   = "file:"   // a file, by the path that the config names it by
	fromSecret = "secret:" // a stored secret
	fromInput  = "input:"  // one of VS Code's inputs
	fromConfig = "config:" // stands in the config file itself, under that key
	inHeader   = "header:" // an HTTP header that goes to the server
)

// referred is the target of a ${…} in the file.
type referred struct {
	textfile.Position        // of the text with the reference
	name              string // env:NAME, for instance
}

// credentialsOf are the names of what the entry of a server gives it to sign in with. They are told
// by where they come from and where they go: a variable or an input counts that is called like a
// secret, or goes where a secret does; a file always.
func credentialsOf(entry *textfile.Node, references []referred) []string {
	c := credentials{references, make(map[string]bool)}
	for _, m := range entry.Members {
		switch m.Key {
		case "env":
			for _, v := range m.Value.Members {
				c.value(v.Value, secret.Variable(v.Key), fromConfig+"env."+v.Key)
			}
		case "headers":
			for _, h := range m.Value.Members {
				if isSecret := secret.Variable(h.Key); c.value(h.Value, isSecret, "") || isSecret {
					c.names[inHeader+h.Key] = true
				}
			}
		case "args":
			for _, word := range m.Value.Items {
				c.value(word, false, fromConfig+"args")
			}
		case "url", httpURL, "serverUrl":
			c.value(m.Value, false, fromConfig+m.Key)
		case "oauth":
			for _, o := range m.Value.Members {
				switch o.Key {
				case "client_secret", "clientSecret", "client_key":
					c.value(o.Value, true, fromConfig+"oauth."+o.Key)
				}
			}
		case "envFile":
			c.names[fromFile+m.Value.Text] = true
		}
	}
	return slices.Sorted(maps.Keys(c.names))
}

type credentials struct {
	references []referred
	names      map[string]bool
}

// value takes in a value, and reports whether it refers to a credential. isSecret says that it goes
// where a secret does; one that stands there itself has the name literal.
func (c credentials) value(n *textfile.Node, isSecret bool, literal string) bool {
	found := false
	for _, r := range c.references {
		kind, name, _ := strings.Cut(r.name, ":")
		always := kind+":" == fromFile || kind+":" == fromSecret
		if r.Position == n.Position && (always || isSecret || secret.Variable(name)) {
			c.names[r.name], found = true, true
		}
	}
	if plain := !strings.Contains(n.Text, "${"); literal != "" && !found && plain &&
		(isSecret && n.Text != "" || literalSecret(n.Text)) {
		c.names[literal] = true
	}
	return found
}

// literalSecret reports whether text is an address with a secret in it.
func literalSecret(text string) bool {
	_, err := url.Parse(text)
	return err == nil && secret.Text(text, false) != text
}
