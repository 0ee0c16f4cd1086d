package search

var FieldNames = [numFields]string{"name", "title", "hint", "alias", "summary", "desc", "prop", "proptext", "enum", "server", "servertitle", "servertext"}

// NewTuned returns an index with some numbers of its ranking set.
func NewTuned(set map[string]float64, without ...Ingredient) *Index {
	x := New(Options{Without: without})
	for k, v := range set {
		found := false
		for i, n := range FieldNames {
			f := &x.rank.fields[i]
			switch k {
			case n + ".w":
				f.weight, found = v, true
			case n + ".p":
				f.pivot, found = v, true
			case n + ".b":
				f.share, found = v, true
			}
		}
		if !found {
			p := x.rank.number(k)
			*p = v
		}
	}
	return x
}

// Defaults are the numbers of the ranking, with some set.
func Defaults(set map[string]float64) map[string]float64 {
	x := NewTuned(set)
	out := make(map[string]float64)
	for i, n := range FieldNames {
		f := x.rank.fields[i]
		out[n+".w"], out[n+".p"], out[n+".b"] = f.weight, f.pivot, f.share
	}
	for _, k := range []string{"saturation", "prior", "synonym", "phrasing", "unstemmed", "phrase", "compound", "misspelt", "coverage", "nameCover", "action"} {
		out[k] = *x.rank.number(k)
	}
	return out
}

func (r *ranking) number(k string) *float64 {
	return map[string]*float64{"saturation": &r.saturation, "prior": &r.prior, "synonym": &r.synonym, "phrasing": &r.phrasing,
		"unstemmed": &r.unstemmed, "phrase": &r.phrase, "compound": &r.compound, "misspelt": &r.misspelt,
		"coverage": &r.coverage, "nameCover": &r.nameCover, "action": &r.action}[k]
}
