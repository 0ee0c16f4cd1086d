// Package search finds tools by words, names and patterns: an inverted index over everything that describes a tool, and
// a ranking that is the hub's own. It needs no service, no model and no network.
//
// An Index knows tools and the servers that they come from. It knows no caller, surface or profile:
// what a caller may find is a Scope of each query, so one index serves all of them, and an answer
// tells nothing of what is not in the scope. See docs/search.md for how answers are ranked.
package search

import (
	"context"
	"encoding/json"
)

// Document is one tool, as it is indexed. What it holds is read, never changed, and may be kept.
type Document struct {
	ID          string          // the caller's, unique in the index: the canonical name
	Name        string          // the name on its server
	Title       string          // for people
	Description string          //
	Hint        string          // search_hint: words it should be found by
	Schema      json.RawMessage // its inputSchema: property names, descriptions and enum values are indexed
	Digest      string          // of the schema, the key of cached vectors
}

// Server is the owner of documents.
type Server struct {
	Name        string // unique in the index
	Title       string
	Description string // what the server says of itself
}

// Options are an index's settings; the zero value is useful.
type Options struct {
	// Meaning finds tools by meaning beside the words, if there is one; deferred/embed is.
	Meaning Meaning
}

// Meaning finds tools by what a text means. Index calls its methods without holding a lock, Put and
// Remove as its own are called.
type Meaning interface {
	Put(s Server, docs []Document)
	Remove(server string)
	// Near returns the IDs of at most n tools, the nearest first, or why it cannot, in words that the asker may see.
	Near(ctx context.Context, text string, n int, within func(id string) bool) ([]string, error)
}

// Query asks for tools by words.
type Query struct {
	Text    string
	Limit   int      // hits at most; default 5, at most 100
	Servers []string // only tools of these servers; empty: all
	Scope   *Scope   // what this caller may find; nil: all

	// Learned are earlier questions of this caller, with the tools that answered them.
	Learned []Example

	// Shown says how this caller knows a tool, for patterns; nil: by ID and Name alone.
	Shown func(id string) string
}

// Example is a question that led to a tool.
type Example struct {
	Text string
	ID   string // of the tool
}

// Hit is one tool found.
type Hit struct {
	ID     string
	Score  float64  // comparable between questions, unless a Meaning has its say; positive
	Fields []string // which fields matched, the most telling first
}

// Answer holds the tools that were found, best first; equal scores are in order of ID.
type Answer struct {
	Hits  []Hit
	Weak  bool     // no hit fits: too little of what was asked for is in the best
	Notes []string // what the asker should know of how it was found, for instance that something was left out
}

// Limits of one query.
const (
	defaultLimit = 5
	maxLimit     = 100
)

func (q *Query) limit() int {
	if q.Limit <= 0 {
		return defaultLimit
	}
	return min(q.Limit, maxLimit)
}

// Search finds tools by words: a question, a task, keywords, or a name. It is safe for concurrent use, also with Put.
// Where there is a Meaning it is asked, too, and Notes says so if it does not answer.
func (x *Index) Search(ctx context.Context, q Query) Answer {
	var near []string
	var notes []string
	if x.meaning != nil && ctx.Err() == nil && q.Text != "" {
		var err error
		if near, err = x.meaning.Near(ctx, q.Text, max(20, q.limit()), q.Scope.accepts()); err != nil {
			notes = append(notes, "found by words alone: "+err.Error())
		}
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	a := x.in(q.Scope).search(ctx, q, near)
	a.Notes = append(a.Notes, notes...)
	return a
}
