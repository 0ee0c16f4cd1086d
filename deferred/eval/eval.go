// Package eval measures tool search on a catalog and questions whose answers are known.
//
// A catalog is a file of JSON lines, a tool a line; so are questions. docs/search.md has the formats, which anybody can
// write for their own servers.
package eval

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
)

// Catalog is the tools to search, by server.
type Catalog struct {
	Servers []search.Server // in the order of the file
	Tools   map[string][]search.Document
	Full    map[string]json.RawMessage // each tool's line of the full list, by ID
}

// Query is one question. A group is found when any of its tools is returned.
type Query struct {
	ID     string     `json:"id"`
	Text   string     `json:"query"`
	Kind   string     `json:"kind"`
	Gold   []string   `json:"gold"`
	Groups [][]string `json:"gold_groups"`
}

// maxLine bounds a line of a file.
const maxLine = 16 << 20

type toolLine struct {
	Server            string          `json:"server"`
	Name              string          `json:"name"`
	Title             string          `json:"title"`
	Description       string          `json:"description"`
	SearchHint        string          `json:"searchHint"`
	InputSchema       json.RawMessage `json:"inputSchema"`
	ServerTitle       string          `json:"serverTitle"`
	ServerDescription string          `json:"serverDescription"`
}

// declaration is an entry of a list of tools.
type declaration struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
}

// ReadCatalog reads the lines of a tools file. A tool's ID is server.name.
func ReadCatalog(r io.Reader) (*Catalog, error) {
	c := &Catalog{Tools: make(map[string][]search.Document), Full: make(map[string]json.RawMessage)}
	err := eachLine(r, func(line []byte) error {
		var t toolLine
		if err := json.Unmarshal(line, &t); err != nil {
			return err
		}
		if t.Server == "" || t.Name == "" {
			return errors.New(`a tool needs "server" and "name": write both`)
		}
		id := t.Server + "." + t.Name
		if _, twice := c.Full[id]; twice {
			return fmt.Errorf("tool %q comes twice: keep one of them", id)
		}
		if _, ok := c.Tools[t.Server]; !ok {
			c.Servers = append(c.Servers, search.Server{Name: t.Server, Title: t.ServerTitle,
				Description: t.ServerDescription})
		}
		c.Tools[t.Server] = append(c.Tools[t.Server], search.Document{
			ID: id, Name: t.Name, Title: t.Title, Description: t.Description, Hint: t.SearchHint, Schema: t.InputSchema,
		})
		full, err := json.Marshal(declaration{id, t.Title, t.Description, t.InputSchema})
		c.Full[id] = full
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read tools: %w", err)
	}
	if len(c.Full) == 0 {
		return nil, errors.New("read tools: there is none: write a tool a line")
	}
	return c, nil
}

// ReadQueries reads the lines of a query file.
func ReadQueries(r io.Reader) ([]Query, error) {
	var out []Query
	err := eachLine(r, func(line []byte) error {
		var q Query
		if err := json.Unmarshal(line, &q); err != nil {
			return err
		}
		if len(q.Groups) == 0 {
			for _, id := range q.Gold {
				q.Groups = append(q.Groups, []string{id})
			}
		}
		if q.Text == "" || len(q.Groups) == 0 {
			return errors.New(`a query needs "query" and "gold_groups" or "gold": write them`)
		}
		q.Kind = cmp.Or(q.Kind, "query")
		out = append(out, q)
		return nil
	})
	if err == nil && len(out) == 0 {
		err = errors.New("there is none: write a query a line")
	}
	if err != nil {
		return nil, fmt.Errorf("read queries: %w", err)
	}
	return out, nil
}

func eachLine(r io.Reader, do func([]byte) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	for n := 1; s.Scan(); n++ {
		line := bytes.TrimSpace(s.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := do(slices.Clone(line)); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return s.Err()
}

// Index indexes the catalog.
func (c *Catalog) Index() *search.Index {
	x := search.New(search.Options{})
	for _, s := range c.Servers {
		x.Put(s, c.Tools[s.Name])
	}
	return x
}
