package search

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tally holds the score of every document, or of every server, by slot.
type tally struct {
	score  []float32
	fields []fieldSet
	mask   []uint64 // which concepts matched
	best   []float32
}

func newTally(n int) *tally {
	return &tally{make([]float32, n), make([]fieldSet, n), make([]uint64, n), make([]float32, n)}
}

// docsTally returns an empty tally of all tools: one that another search has put into x.tallies, if it fits.
func (x *Index) docsTally() *tally {
	t, ok := x.tallies.Get().(*tally)
	if !ok || len(t.score) != len(x.docs) {
		return newTally(len(x.docs))
	}
	clear(t.score)
	clear(t.fields)
	clear(t.mask)
	return t // credit leaves best empty
}

// found is one tool with its score.
type found struct {
	at     uint32
	score  float64
	fields fieldSet
	mask   uint64
	loss   float64 // the share of the score that it has lost, being like a better one
}

func (p *part) search(ctx context.Context, q Query, near []string) Answer {
	x := p.x
	if ctx.Err() != nil || p.live == 0 {
		return Answer{}
	}
	docs, a := x.docsTally(), p.read(q.Text)
	p.score(a, docs)
	p.named(q.Text, docs)
	best := p.best(docs, q, max(candidates, q.limit()))
	x.tallies.Put(docs)
	p.rerank(a, best)
	p.spread(a, best)
	if len(near) > 0 {
		return p.answer(p.fuse(best, near, q), q)
	}
	// The mean of two shares: of all that was asked for, and of one word that tells as much as a word can.
	most := math.Sqrt(a.value * min(a.value, idf(1, p.live)))
	for i := range best {
		best[i].score /= max(most, 1e-9)
	}
	best = p.learn(q, best)
	out := p.answer(best, q)
	out.Weak = len(best) > 0 && best[0].score < fits
	return out
}

// fits is the least score of a tool that fits. Few questions that have an answer are below it;
// docs/search.md has figures.
const fits = 0.45

// candidates is the number of tools that are looked at closely.
const candidates = 100

// score adds up what every tool is credited with.
func (p *part) score(a *asked, docs *tally) {
	x, servers := p.x, newTally(len(p.x.slots))
	left := maxPostings
	for i := range a.concepts {
		c := &a.concepts[i]
		for _, v := range c.words {
			left -= len(p.docsOf(v.term))
		}
		if left < 0 {
			break // the commonest words, which come last, tell least
		}
		p.credit(c, i, p.live, docs, p.docsOf)
		p.credit(c, i, p.servers, servers, p.serversOf)
		if p.creditNamed(c, servers) {
			a.servers |= 1 << i
		}
	}
	prior := float32(x.rank.prior)
	for at, slot := range x.owners {
		if slot != nobody && servers.score[slot] > 0 && p.has(uint32(at)) {
			docs.score[at] += prior * servers.score[slot]
			docs.fields[at] |= servers.fields[slot]
			docs.mask[at] |= servers.mask[slot]
		}
	}
}

// credit adds the best of a concept's words to each score.
func (p *part) credit(c *concept, bit, n int, t *tally, list func(term uint32) []posting) {
	half, rarest := float32(p.x.rank.saturation), math.Inf(1)
	if c.known {
		rarest = idf(len(list(c.words[0].term)), n)
	}
	for _, v := range c.words {
		postings := list(v.term)
		w := float32(v.weight * min(idf(len(postings), n), rarest))
		for _, p := range postings {
			at := p.at()
			t.best[at] = max(t.best[at], w*p.tf/(half+p.tf))
		}
	}
	for _, v := range c.words {
		for _, p := range list(v.term) {
			at := p.at()
			t.score[at] += t.best[at]
			t.best[at] = 0
			t.fields[at] |= p.fields()
			t.mask[at] |= 1 << bit
		}
	}
}

// creditNamed adds to the servers that a concept names, the more so the less other servers' tools
// speak of it: "on GitHub" names a server, "time" hardly. It reports whether there is such a server.
func (p *part) creditNamed(c *concept, t *tally) (names bool) {
	x := p.x
	for _, v := range c.words {
		if strings.Contains(x.entries[v.term].text, "=") {
			continue
		}
		var slots []uint32
		for _, said := range p.serversOf(v.term) {
			if said.fields()&(1<<fieldServer|1<<fieldServerTitle) != 0 {
				slots = append(slots, said.at())
			}
		}
		if len(slots) == 0 {
			continue
		}
		elsewhere := 0
		for _, said := range p.docsOf(v.term) {
			if !slices.Contains(slots, x.owners[said.at()]) {
				elsewhere++
			}
		}
		d := idf(elsewhere, p.live) / idf(0, p.live)
		w := float32(x.rank.named * v.weight * d * d * idf(len(slots), p.servers))
		names = true
		for _, slot := range slots {
			t.score[slot] += w
		}
	}
	return names
}

// nameBonus puts a tool that is named before all that are not.
const nameBonus = 1000

// maxNamed bounds how many chunks of a text are looked up as names.
const maxNamed = 64

// named puts the tools first whose name the text is, or which it names among other words in the
// spelling of programs. A brand ("GitHub") and a word ("e-mail") are not the tool that is called so.
func (p *part) named(text string, t *tally) {
	x := p.x
	if len(text) > maxQueryBytes {
		return
	}
	at := slices.Clone(x.names[fold(text)])
	for i, chunk := range strings.Fields(text) {
		if i == maxNamed {
			break
		}
		chunk = strings.Trim(chunk, "\"'`()[]<>,;:!?.")
		if first, _ := utf8.DecodeRuneInString(chunk); strings.ContainsAny(chunk, "_-.") ||
			len(camel(chunk)) > 1 && !unicode.IsUpper(first) {
			for _, n := range x.names[fold(chunk)] {
				if len(x.docs[n].name) > 1 || fold(chunk) != fold(x.docs[n].src.Name) {
					at = append(at, n)
				}
			}
		}
	}
	slices.Sort(at)
	for _, at := range slices.Compact(at) {
		if !p.has(at) {
			continue
		}
		t.score[at] += nameBonus
		t.fields[at] |= 1 << fieldName
	}
}

// best returns the n best tools that the asker may find, best first.
func (p *part) best(t *tally, q Query, n int) []found {
	x := p.x
	only := x.slotsOf(q.Servers)
	best := make([]found, 0, 2*n)
	least := float32(0)
	for at, score := range t.score {
		if score <= least || !p.has(uint32(at)) || only != nil && !only[x.owners[at]] {
			continue
		}
		best = append(best, found{at: uint32(at), score: float64(score), fields: t.fields[at], mask: t.mask[at]})
		if len(best) == 2*n {
			slices.SortFunc(best, x.byScore)
			best = best[:n]
			// A later one of the same score may have the smaller ID: it must still come in.
			least = float32(best[n-1].score) * (1 - 1e-6)
		}
	}
	slices.SortFunc(best, x.byScore)
	return best[:min(len(best), n)]
}

// byScore orders what was found: best first, ties by ID.
func (x *Index) byScore(a, b found) int {
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	return strings.Compare(x.docs[a.at].src.ID, x.docs[b.at].src.ID)
}

// rerank looks at the candidates closely: how much of the question each covers, how much of its name the question says,
// and whether it does what is wanted.
func (p *part) rerank(a *asked, best []found) {
	x := p.x
	total := 0.0
	for _, c := range a.concepts {
		total += c.value
	}
	for i := range best {
		f := &best[i]
		if total > 0 {
			covered := 0.0
			for m := f.mask; m != 0; m &= m - 1 {
				covered += a.concepts[bits.TrailingZeros64(m)].value
			}
			f.score *= 1 + x.rank.coverage*covered/total
		}
		if f.mask&^a.servers == 0 && bits.OnesCount64(a.servers) < len(a.concepts) {
			f.score *= 1 - x.rank.bare // a server that is named must not hide what others have
		}
		f.score *= 1 + x.rank.nameCover*p.nameCover(a, f.at)
		if does := x.docs[f.at].does; does != 0 && a.wants != 0 && does&a.wants == 0 {
			f.score *= 1 - x.rank.action
		}
	}
	slices.SortFunc(best, x.byScore)
}

// manifold is the number of concepts from which on a question may want several tools.
const manifold = 12

// spread lowers each tool that is like a better one, so that the places of a long question go to
// different tools and servers.
func (p *part) spread(a *asked, best []found) {
	if len(a.concepts) < manifold {
		return
	}
	for i := range best {
		top := i
		for j := range best[i:] {
			if best[i+j].score > best[top].score {
				top = i + j
			}
		}
		f := best[top]
		copy(best[i+1:top+1], best[i:top])
		best[i] = f
		for j := i + 1; j < len(best); j++ {
			g := &best[j]
			if loss := p.x.rank.alike * p.alikeness(a, f, *g); loss > g.loss {
				g.score *= (1 - loss) / (1 - g.loss)
				g.loss = loss
			}
		}
	}
}

// alikeness returns how like two tools are, up to 1: tools of one server by the share of the
// question that both have, those of two servers by their names.
func (p *part) alikeness(a *asked, f, g found) float64 {
	x := p.x
	if x.owners[f.at] != x.owners[g.at] {
		if slices.Equal(x.docs[f.at].name, x.docs[g.at].name) {
			return 1
		}
		return 0
	}
	both, either := 0.0, 0.0
	for m := f.mask | g.mask; m != 0; m &= m - 1 {
		c := bits.TrailingZeros64(m)
		either += a.concepts[c].value
		if f.mask&g.mask&(1<<c) != 0 {
			both += a.concepts[c].value
		}
	}
	return both / max(either, 1e-9)
}

// fused is the constant of reciprocal rank fusion: the larger, the less a better place counts.
const fused = 60

// fuse makes one order of those by words and by meaning. A tool that is named stays first.
func (p *part) fuse(best []found, near []string, q Query) []found {
	x := p.x
	only, place := x.slotsOf(q.Servers), make(map[uint32]int, len(best))
	for i := range best {
		f := &best[i]
		place[f.at] = i
		if f.score < nameBonus {
			f.score = 0
		}
		f.score += 1 / float64(fused+i)
	}
	for i, id := range near {
		at, ok := x.ids[id]
		if !ok || !p.has(at) || only != nil && !only[x.owners[at]] {
			continue
		}
		n, ok := place[at]
		if !ok {
			n = len(best)
			best = append(best, found{at: at})
		}
		best[n].score += 1 / float64(fused+i)
		best[n].fields |= 1 << fieldMeaning
	}
	slices.SortFunc(best, x.byScore)
	return best
}

// slotsOf returns the slots of servers; nil, for all, without names.
func (x *Index) slotsOf(names []string) map[uint32]bool {
	if len(names) == 0 {
		return nil
	}
	slots := make(map[uint32]bool, len(names))
	for _, name := range names {
		if sh := x.servers[name]; sh != nil {
			slots[sh.slot] = true
		}
	}
	return slots
}

// nameCover returns the share of a tool's name that the question says.
func (p *part) nameCover(a *asked, at uint32) float64 {
	all, said := 0.0, 0.0
	for _, id := range p.x.docs[at].name {
		w := idf(len(p.docsOf(id)), p.live)
		all += w
		if a.said[id] {
			said += w
		}
	}
	if all == 0 {
		return 0
	}
	return said / all
}

// answer writes the answer.
func (p *part) answer(best []found, q Query) Answer {
	var a Answer
	for _, f := range best[:min(len(best), q.limit())] {
		a.Hits = append(a.Hits, Hit{ID: p.x.docs[f.at].src.ID, Score: f.score, Fields: f.fields.names()})
	}
	return a
}
