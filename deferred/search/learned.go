package search

import "slices"

// learnedFrom is the share of a question from which on the words of earlier ones tell something.
const learnedFrom = 0.3

// learn adds to the score of each tool for the words of the question that led to it before. A tool
// that is named stays first.
func (p *part) learn(q Query, best []found) []found {
	only, taught := p.x.slotsOf(q.Servers), make(map[uint32]map[string]bool)
	for _, e := range q.Learned {
		for _, at := range p.x.names[fold(e.ID)] {
			if p.x.docs[at].src.ID != e.ID || !p.has(at) || only != nil && !only[p.x.owners[at]] {
				continue
			}
			if taught[at] == nil {
				taught[at] = make(map[string]bool)
			}
			for _, w := range p.content(e.Text) {
				taught[at][w] = true
			}
		}
	}
	if len(taught) == 0 {
		return best
	}
	asked, most := p.content(q.Text), 0.0
	for _, w := range asked {
		most += p.tells(w)
	}
	for at, words := range taught {
		both := 0.0
		for _, w := range asked {
			if words[w] {
				both += p.tells(w)
			}
		}
		if both == 0 || both < learnedFrom*most {
			continue
		}
		i := slices.IndexFunc(best, func(f found) bool { return f.at == at })
		if i < 0 {
			i, best = len(best), append(best, found{at: at})
		}
		best[i].score += p.x.rank.learned * both / most
		best[i].fields |= 1 << fieldLearned
	}
	slices.SortFunc(best, p.x.byScore)
	return best
}

// content returns the stems of a question's words, each once, without stop words.
func (p *part) content(text string) (stems []string) {
	for _, w := range words(withoutLiterals(text[:min(len(text), maxQueryBytes)]), true) {
		if s := stem(w.text); !p.x.lexicon.stops[w.text] && !slices.Contains(stems, s) {
			stems = append(stems, s)
		}
	}
	return stems
}

// tells returns how much a stem tells. One that no tool knows is the rarest.
func (p *part) tells(stem string) float64 {
	df := 1
	if id, known := p.term(stem); known {
		df = max(df, len(p.docsOf(id)))
	}
	return idf(df, p.live)
}
