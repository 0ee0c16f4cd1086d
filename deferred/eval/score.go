package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
)

const (
	depth = 25 // hits that are asked for: as many as a model sees
	shown = 5  // of them, those that nDCG and misses look at
)

// Figures are means over queries; shares are between 0 and 1.
type Figures struct {
	Queries  int     `json:"queries"`
	Recall1  float64 `json:"recall@1"`
	Recall3  float64 `json:"recall@3"`
	Recall5  float64 `json:"recall@5"`
	Callable float64 `json:"callable"` // recall@10: a model can call these at once
	NDCG5    float64 `json:"ndcg@5"`
	MRR      float64 `json:"mrr"`
	InView   float64 `json:"in_view"`      // recall@25: a model sees their names
	Weak     float64 `json:"nothing_fits"` // share of queries of which the answer says so
}

// Latency has quantiles of the duration of searches.
type Latency struct {
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
}

// Tokens are estimates of what a model reads.
type Tokens struct {
	FullList int     `json:"full_list"`
	Answer   float64 `json:"answer"` // mean
	Share    float64 `json:"share"`  // of the full list
}

// Miss is a query whose first five hits lack a group.
type Miss struct {
	ID     string   `json:"id"`
	Kind   string   `json:"kind"`
	Query  string   `json:"query"`
	Missed []string `json:"missed"` // the first tool of each group that was not found
	Found  []string `json:"found"`
}

// Report is the outcome of a measurement.
type Report struct {
	Tools   int                `json:"tools"`
	Servers int                `json:"servers"`
	Overall Figures            `json:"overall"`
	Kinds   map[string]Figures `json:"kinds"`
	Tokens  Tokens             `json:"tokens"`
	Latency Latency            `json:"latency"`
	Misses  []Miss             `json:"misses,omitempty"`
}

// Bench is a measurement.
type Bench struct {
	Catalog *Catalog
	Queries []Query
	// Tokens estimates how many tokens a declaration is, and AnswerTokens the answer to a search that
	// found some, best first; nil: none are counted.
	Tokens       func(declaration json.RawMessage) int
	AnswerTokens func(found ...json.RawMessage) int
}

// Run asks every query of an index of the catalog, one after the other, until ctx ends.
func (b Bench) Run(ctx context.Context, x *search.Index) (Report, error) {
	r := Report{Tools: len(b.Catalog.Full), Servers: len(b.Catalog.Servers), Kinds: make(map[string]Figures)}
	if b.Tokens != nil {
		for _, full := range b.Catalog.Full {
			r.Tokens.FullList += b.Tokens(full)
		}
	}
	var took []time.Duration
	for _, q := range b.Queries {
		if ctx.Err() != nil {
			return r, fmt.Errorf("measure: %w", context.Cause(ctx))
		}
		start := time.Now()
		a := x.Search(ctx, search.Query{Text: q.Text, Limit: depth})
		took = append(took, time.Since(start))
		f, miss := judge(q, a.Hits)
		if a.Weak || len(a.Hits) == 0 {
			f.Weak = 1
		}
		r.Overall.add(f)
		kind := r.Kinds[q.Kind]
		kind.add(f)
		r.Kinds[q.Kind] = kind
		if miss != nil {
			r.Misses = append(r.Misses, *miss)
		}
		if b.AnswerTokens != nil {
			var declarations []json.RawMessage
			for _, h := range a.Hits {
				declarations = append(declarations, b.Catalog.Full[h.ID])
			}
			r.Tokens.Answer += float64(b.AnswerTokens(declarations...))
		}
	}
	r.Overall.mean()
	for k, f := range r.Kinds {
		f.mean()
		r.Kinds[k] = f
	}
	r.Tokens.Answer = round(r.Tokens.Answer / float64(max(1, len(b.Queries))))
	r.Tokens.Share = round(r.Tokens.Answer / float64(max(1, r.Tokens.FullList)))
	slices.Sort(took)
	r.Latency = Latency{quantile(took, 0.5), quantile(took, 0.95)}
	return r, nil
}

// judge scores one answer.
func judge(q Query, hits []search.Hit) (Figures, *Miss) {
	f := Figures{Queries: 1}
	ids := make([]string, len(hits))
	for i, h := range hits {
		ids[i] = h.ID
	}
	miss := &Miss{ID: q.ID, Kind: q.Kind, Query: q.Text, Found: ids[:min(shown, len(ids))]}
	each := 1 / float64(len(q.Groups))
	var gain, ideal float64
	for i, group := range q.Groups {
		if i < shown {
			ideal += 1 / math.Log2(float64(i)+2)
		}
		rank := slices.IndexFunc(ids, func(id string) bool { return slices.Contains(group, id) })
		if rank < 0 || rank >= shown {
			miss.Missed = append(miss.Missed, group[0])
		}
		if rank < 0 {
			continue
		}
		f.MRR = max(f.MRR, 1/float64(rank+1))
		for _, at := range []struct {
			k   int
			sum *float64
		}{{1, &f.Recall1}, {3, &f.Recall3}, {5, &f.Recall5}, {10, &f.Callable}, {depth, &f.InView}} {
			if rank < at.k {
				*at.sum += each
			}
		}
		if rank < shown {
			gain += 1 / math.Log2(float64(rank)+2)
		}
	}
	f.NDCG5 = gain / ideal
	if len(miss.Missed) == 0 {
		return f, nil
	}
	return f, miss
}

func (f *Figures) all() []*float64 {
	return []*float64{&f.Recall1, &f.Recall3, &f.Recall5, &f.Callable, &f.NDCG5, &f.MRR, &f.InView, &f.Weak}
}

func (f *Figures) add(o Figures) {
	f.Queries += o.Queries
	for i, v := range o.all() {
		*f.all()[i] += *v
	}
}

func (f *Figures) mean() {
	for _, v := range f.all() {
		*v = round(*v / float64(f.Queries))
	}
}

// round keeps four decimals, so that files of figures do not change with the order of additions.
func round(v float64) float64 { return math.Round(v*1e4) / 1e4 }

// quantile of sorted durations, in milliseconds.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := int(math.Ceil(q*float64(len(sorted)))) - 1
	return round(float64(sorted[max(at, 0)].Microseconds()) / 1000)
}
