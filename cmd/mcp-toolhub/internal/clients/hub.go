package clients

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
)

// EntryName is the name of the hub among the servers of a client.
const EntryName = "toolhub"

// Hub says how a client reaches the hub: it runs Command, or connects to URL.
type Hub struct {
	Command string
	Args    []string
	URL     string
	Token   string // for the address; "" for none

	IsOwn func(address string) bool // reports whether this hub is reached there; nil for nowhere but on this machine
}

// stands reports whether a server of a client is the hub, under the name that connect gives it.
func (h Hub) stands(s *Server) bool {
	return s.Name == EntryName && (s.IsHub() || h.IsOwn != nil &&
		slices.ContainsFunc(append([]string{s.URL}, s.Args...), h.IsOwn))
}

// Hub returns the client's entry of the hub as it is now; nil where there is none.
func (c *Client) Hub(e Env) *Server {
	path := c.File(e)
	f, err := c.ReadClient(path)
	if err != nil {
		return nil
	}
	for _, s := range c.reading(path).Read(f, path) {
		if s.Name == EntryName && (s.IsHub() || s.URL != "") {
			return &s
		}
	}
	return nil
}

// Profile returns the profile that the entry of a hub names; "" for none.
func (s *Server) Profile() string {
	for i, arg := range s.Args[:max(0, len(s.Args)-1)] {
		if arg == "--profile" {
			return s.Args[i+1]
		}
	}
	_, profile, _ := strings.Cut(s.URL, "/mcp/p/")
	return profile
}

// entry returns the hub as an entry in the client's own format.
func (c *Client) entry(h Hub) (splice.Object, error) {
	var o splice.Object
	add := func(key string, value any) { o = append(o, splice.Member{Key: key, Value: value}) }
	if !c.List {
		o = append(o, c.before...)
	}
	if h.URL == "" {
		if c.stdio != "" {
			add(c.kind, c.stdio)
		}
		if c.argv {
			add("command", append([]string{h.Command}, h.Args...))
		} else {
			add(cmp.Or(c.command, "command"), h.Command)
			add("args", h.Args)
		}
		return append(o, c.sequel...), nil
	}
	if c.url == "" {
		return nil, fmt.Errorf("%s takes no address in its file: connect it with --stdio", c.Title)
	}
	if c.http != "" {
		add(c.kind, c.http)
	}
	add(c.url, h.URL)
	if h.Token != "" {
		headers := any(splice.Object{{Key: "Authorization", Value: "Bearer " + h.Token}})
		keys := c.headers
		if len(keys) == 0 {
			keys = []string{"headers"}
		}
		for i := len(keys) - 1; i > 0; i-- {
			headers = splice.Object{{Key: keys[i], Value: headers}}
		}
		add(keys[0], headers)
	}
	return append(o, c.sequel...), nil
}

// claudeTool returns the command of Claude Code. It is used in place of the file: Claude Code keeps
// all its state there, and rewrites it all the time.
func claudeTool() *clientTool {
	return &clientTool{
		program: "claude",
		add: func(name string, h Hub) []string {
			if h.URL == "" {
				return append([]string{"mcp", "add", "-s", "user", name, "--", h.Command}, h.Args...)
			}
			return []string{"mcp", "add", "-s", "user", "--transport", "http", name, h.URL}
		},
		remove: func(name string) []string { return []string{"mcp", "remove", "-s", "user", name} },
	}
}
