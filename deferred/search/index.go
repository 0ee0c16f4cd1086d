package search

import (
	"math"
	"slices"
	"strings"
	"sync"
)

// Index holds the tools of all servers. Adding or replacing a server costs what that server's tools cost, whatever else
// is there. All its methods are safe for concurrent use; texts are analysed outside of the lock.
type Index struct {
	rank    ranking
	lexicon *lexicon
	meaning Meaning
	tallies sync.Pool // of tallies of documents, which are large

	mu      sync.RWMutex
	version uint64   // changes with everything below
	docs    []doc    // slots; a removed tool's slot is used again
	owners  []uint32 // of each slot: the shard's slot, or nobody
	free    []uint32
	live    int
	ids     map[string]uint32 // slots by ID, where there is a meaning
	servers map[string]*shard
	slots   []*shard // by shard.slot; nil where free
	terms   map[string]uint32
	entries []entry // by term
	spare   []uint32
	names   map[string][]uint32 // tools by folded names
	grams   map[gram][]uint32   // pieces of the words that are known, unstemmed
}

// doc is one tool in the index.
type doc struct {
	src  Document // without its schema, which is not needed again
	name []uint32 // the terms of its name
	does actions
}

// nobody owns a free slot.
const nobody = ^uint32(0)

// shard is one server's part of the index.
type shard struct {
	slot  uint32
	docs  []uint32
	terms []uint32 // each term that its documents or it itself are listed under, once
}

// entry lists the occurrences of a term.
type entry struct {
	text    string
	docs    []posting
	servers []posting // by shard.slot
}

// posting is one occurrence: the weighted and normalised frequency over all fields, and which
// fields they were. Most of the index is postings, so slot and fields share a number. There is room
// for two million tools.
type posting struct {
	place uint32
	tf    float32
}

func newPosting(at uint32, t weighedTerm) posting {
	return posting{at<<fieldMeaning | uint32(t.fields), t.tf}
}

func (p posting) at() uint32 { return p.place >> fieldMeaning }

func (p posting) fields() fieldSet { return fieldSet(p.place & (1<<fieldMeaning - 1)) }

// New returns an empty index.
func New(o Options) *Index {
	x := &Index{
		rank: newRanking(), meaning: o.Meaning, servers: make(map[string]*shard), terms: make(map[string]uint32),
		names: make(map[string][]uint32), grams: make(map[gram][]uint32), ids: make(map[string]uint32),
	}
	x.lexicon = newLexicon()
	return x
}

// Put replaces all that is indexed of a server. A server without documents is as one that was removed.
func (x *Index) Put(s Server, docs []Document) {
	analysed := make([]analysis, len(docs))
	g := newGather(&x.rank, x.lexicon)
	for i := range docs {
		analysed[i] = g.document(&docs[i], s.Name)
	}
	own := g.server(&s)
	if x.meaning != nil {
		x.meaning.Put(s, docs)
	}

	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(s.Name)
	if len(docs) == 0 {
		return
	}
	sh := &shard{slot: x.shardSlot(), docs: make([]uint32, 0, len(docs)), terms: make([]uint32, len(g.texts))}
	x.servers[s.Name], x.slots[sh.slot] = sh, sh
	for i, text := range g.texts {
		sh.terms[i] = x.term(text)
	}
	for i := range docs {
		x.insert(sh, &docs[i], &analysed[i])
	}
	for _, t := range own {
		e := &x.entries[sh.terms[t.term]]
		e.servers = append(e.servers, newPosting(sh.slot, t))
	}
	x.live += len(docs)
}

// insert adds one document of a server's shard, which has its terms.
func (x *Index) insert(sh *shard, d *Document, a *analysis) {
	at := x.docSlot()
	kept := &x.docs[at]
	*kept = doc{src: *d, name: a.name, does: a.does}
	kept.src.Schema = nil
	x.owners[at] = sh.slot
	sh.docs = append(sh.docs, at)
	if x.meaning != nil {
		x.ids[d.ID] = at
	}
	for _, t := range a.terms {
		e := &x.entries[sh.terms[t.term]]
		e.docs = append(e.docs, newPosting(at, t))
	}
	for i, term := range kept.name {
		kept.name[i] = sh.terms[term]
	}
	for _, name := range a.names {
		x.names[name] = append(x.names[name], at)
	}
}

// Remove takes a server and all its tools out of the index.
func (x *Index) Remove(server string) {
	if x.meaning != nil {
		x.meaning.Remove(server)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(server)
}

func (x *Index) remove(server string) {
	x.version++
	sh := x.servers[server]
	if sh == nil {
		return
	}
	delete(x.servers, server)
	x.slots[sh.slot] = nil
	for _, id := range sh.terms {
		e := &x.entries[id]
		e.docs = slices.DeleteFunc(e.docs, func(p posting) bool { return x.owners[p.at()] == sh.slot })
		e.servers = slices.DeleteFunc(e.servers, func(p posting) bool { return p.at() == sh.slot })
		if len(e.docs)+len(e.servers) == 0 {
			x.forgetTerm(id)
		}
	}
	for _, at := range sh.docs {
		for _, name := range foldedNames(&x.docs[at].src, server) {
			x.names[name] = slices.DeleteFunc(x.names[name], func(other uint32) bool { return other == at })
			if len(x.names[name]) == 0 {
				delete(x.names, name)
			}
		}
		delete(x.ids, x.docs[at].src.ID)
		x.docs[at] = doc{}
		x.owners[at] = nobody
	}
	x.free = append(x.free, sh.docs...)
	x.live -= len(sh.docs)
}

func (x *Index) term(text string) uint32 {
	if id, ok := x.terms[text]; ok {
		return id
	}
	var id uint32
	if n := len(x.spare); n > 0 {
		id, x.spare = x.spare[n-1], x.spare[:n-1]
	} else {
		id = uint32(len(x.entries))
		x.entries = append(x.entries, entry{})
	}
	text = strings.Clone(text) // it may be a part of a long one
	x.entries[id] = entry{text: text}
	x.terms[text] = id
	x.addGrams(id)
	return id
}

func (x *Index) forgetTerm(id uint32) {
	delete(x.terms, x.entries[id].text)
	x.removeGrams(id)
	x.entries[id] = entry{}
	x.spare = append(x.spare, id)
}

func (x *Index) docSlot() uint32 {
	if n := len(x.free); n > 0 {
		at := x.free[n-1]
		x.free = x.free[:n-1]
		return at
	}
	x.docs, x.owners = append(x.docs, doc{}), append(x.owners, nobody)
	return uint32(len(x.docs) - 1)
}

func (x *Index) shardSlot() uint32 {
	if i := slices.Index(x.slots, nil); i >= 0 {
		return uint32(i)
	}
	x.slots = append(x.slots, nil)
	return uint32(len(x.slots) - 1)
}

// idf is the inverse document frequency of a term that df of n have.
func idf(df, n int) float64 {
	return math.Log(1 + (float64(n)-float64(df)+0.5)/(float64(df)+0.5))
}
