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

// credentialsOf are the names of what the entry of a server gives it to sign in with. They are told
// by where they come from and where they go: a variable or an input counts that is called like a
// secret, or goes where a secret does; a file always.
func credentialsOf(entry *textfile.Node) []string {
	c := make(credentials)
	for _, m := range entry.Members {
		switch m.Key {
		case "env":
			for _, v := range m.Value.Members {
				c.value(v.Value.Text, secret.Variable(v.Key), fromConfig+"env."+v.Key)
			}
		case "headers":
			for _, h := range m.Value.Members {
				if isSecret := secret.Variable(h.Key); c.value(h.Value.Text, isSecret, "") || isSecret {
					c[inHeader+h.Key] = true
				}
			}
		case "args":
			for _, word := range m.Value.Items {
				c.value(word.Text, false, fromConfig+"args")
			}
		case "url", httpURL, "serverUrl":
			c.value(m.Value.Text, false, fromConfig+m.Key)
		case "oauth":
			for _, o := range m.Value.Members {
				switch o.Key {
				case "client_secret", "clientSecret", "client_key":
					c.value(o.Value.Text, true, fromConfig+"oauth."+o.Key)
				}
			}
		case "envFile":
			c[fromFile+m.Value.Text] = true
		}
	}
	return slices.Sorted(maps.Keys(c))
}

// credentials are names.
type credentials map[string]bool

// value takes in a value, and reports whether it refers to a credential. isSecret says that it goes
// where a secret does; one that stands there itself has the name literal.
func (c credentials) value(text string, isSecret bool, literal string) bool {
	found := false
	for rest := text; ; {
		before, after, refers := strings.Cut(rest, "${")
		body, after, closed := strings.Cut(after, "}") // and what is left of ${VAR:-${secret:name}}
		if !refers || !closed {
			break
		}
		for part := range strings.SplitSeq(body, ":-${") {
			if name := referred(part, isSecret); name != "" && !strings.HasSuffix(before, "$") {
				c[name], found = true, true
			}
		}
		rest = after
	}
	switch {
	case literal == "" || found:
	case isSecret && text != "" && !strings.Contains(text, "${"), literalSecret(text):
		c[literal] = true
	}
	return found
}

// literalSecret reports whether text is an address with a secret in it.
func literalSecret(text string) bool {
	_, err := url.Parse(text)
	return err == nil && !strings.Contains(text, "${") && secret.Text(text, false) != text
}

// referred is the name of the credential that the reference ${body} stands for; "" for none.
func referred(body string, isSecret bool) string {
	switch body {
	case "workspaceFolder", "workspaceFolderBasename", "pathSeparator", "/", "userHome":
		return ""
	}
	word, rest, prefixed := strings.Cut(body, ":")
	switch {
	case prefixed && word == "file":
		return fromFile + rest
	case prefixed && word == "secret":
		return fromSecret + rest
	case prefixed && word == "input" && (isSecret || secret.Variable(rest)):
		return fromInput + rest
	case prefixed && word == "input":
		return ""
	case prefixed && word == "env":
		body = rest
	}
	name, _, _ := strings.Cut(body, ":-")
	if !envName.MatchString(name) || !isSecret && !secret.Variable(name) {
		return ""
	}
	return fromEnv + name
}
