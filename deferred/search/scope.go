package search

import "sync/atomic"

// Scope limits what one kind of caller may find. Answers within a scope are those of an index that
// holds nothing else: how rare a word is, which words are known, which servers there are, all of
// that is counted within it. A Scope remembers what it has counted, so keep one for as long as what
// it says stays the same. It is safe for concurrent use.
type Scope struct {
	within func(id string) bool
	latest atomic.Pointer[part]
}

// NewScope returns the scope of the tools whose ID within accepts. It is called while an index is
// locked: it must not call that.
func NewScope(within func(id string) bool) *Scope { return &Scope{within: within} }

// accepts is within, also of no scope, which is everything.
func (s *Scope) accepts() func(id string) bool {
	if s == nil {
		return nil
	}
	return s.within
}

// part is an index within a scope, at one moment. It is immutable.
type part struct {
	x       *Index
	version uint64

	live    int // tools
	servers int // that have any of them

	// Both are nil where the part is all of the index.
	docs  []bool // by slot
	shown []bool // servers, by slot
}

// in returns the part of x within a scope. The caller holds the lock for as long as it uses that.
func (x *Index) in(s *Scope) *part {
	all := &part{x: x, version: x.version, live: x.live, servers: len(x.servers)}
	if s == nil {
		return all
	}
	if p := s.latest.Load(); p != nil && p.x == x && p.version == x.version {
		return p
	}
	p := &part{x: x, version: x.version, docs: make([]bool, len(x.docs)), shown: make([]bool, len(x.slots))}
	for at := range x.docs {
		if slot := x.owners[at]; slot != nobody && s.within(x.docs[at].src.ID) {
			p.docs[at] = true
			p.live++
			if !p.shown[slot] {
				p.shown[slot] = true
				p.servers++
			}
		}
	}
	if p.live == x.live {
		p = all
	}
	s.latest.Store(p)
	return p
}

// whole reports whether p is all of its index.
func (p *part) whole() bool { return p.docs == nil }

func (p *part) has(at uint32) bool { return p.x.owners[at] != nobody && (p.whole() || p.docs[at]) }

// docsOf returns the tools that have a term.
func (p *part) docsOf(term uint32) []posting { return among(p.docs, p.x.entries[term].docs) }

// serversOf returns the servers that say a term of themselves.
func (p *part) serversOf(term uint32) []posting { return among(p.shown, p.x.entries[term].servers) }

// among returns the postings of what a part has; all of them where has is nil.
func among(has []bool, postings []posting) []posting {
	if has == nil {
		return postings
	}
	var kept []posting
	for _, p := range postings {
		if has[p.at()] {
			kept = append(kept, p)
		}
	}
	return kept
}

// knows reports whether anything in p has a term.
func (p *part) knows(term uint32) bool {
	return p.whole() || len(p.docsOf(term))+len(p.serversOf(term)) > 0
}

// term returns the term of a text, if anything in p has it.
func (p *part) term(text string) (uint32, bool) {
	id, ok := p.x.terms[text]
	return id, ok && p.knows(id)
}
