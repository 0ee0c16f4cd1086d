package search

// Len is the number of tools in the index.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.live
}

// Numbers are those of the ranking, by name: for tests that change one.
func (x *Index) Numbers() map[string]*float64 {
	r := &x.rank
	out := map[string]*float64{
		"saturation": &r.saturation, "prior": &r.prior, "named": &r.named, "synonym": &r.synonym, "phrasing": &r.phrasing,
		"unstemmed": &r.unstemmed, "phrase": &r.phrase, "compound": &r.compound, "misspelt": &r.misspelt,
		"coverage": &r.coverage, "name cover": &r.nameCover, "action": &r.action, "verb": &r.verb, "bare": &r.bare, "learned": &r.learned,
		"like": &r.like, "wider": &r.wider, "alike": &r.alike,
	}
	for i, name := range [numFields]string{"name", "title", "hint", "summary", "description", "property", "property text", "enum",
		"server", "server title", "server text", "meaning", "learned"} {
		out[name+" weight"] = &r.fields[i].weight
	}
	return out
}
