package search_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
)

// What is promised of 11,000 tools, in docs/search.md.
const manyTools = 11_000

// invent makes up servers of 22 tools each, in words whose frequencies fall as those of a language do.
func invent(tools int) (servers []search.Server, docs [][]search.Document) {
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 8, 12_000)
	verbs := []string{"get", "list", "create", "update", "delete", "search", "send", "run"}
	word := func() string {
		n := zipf.Uint64()
		b := []byte{"bcdfghklmnprst"[n%14], "aeiou"[n/14%5], "bcdfghklmnprst"[n/70%14], "aeiou"[n/980%5], "lmnrst"[n/4900%6]}
		return string(b)
	}
	text := func(n int) string {
		out := make([]string, n)
		for i := range out {
			out[i] = word()
		}
		return strings.Join(out, " ")
	}
	for s := 0; len(docs)*22 < tools; s++ {
		server := search.Server{Name: fmt.Sprintf("%s-%s", word(), word()), Title: text(2), Description: text(20)}
		server.Name += fmt.Sprint(s)
		var own []search.Document
		for t := range 22 {
			name := fmt.Sprintf("%s_%s_%s_%d", verbs[r.IntN(len(verbs))], word(), word(), t)
			schema := fmt.Sprintf(`{"type":"object","properties":{%q:{"type":"string","description":%q},%q:{"enum":[%q,%q],"description":%q}}}`,
				word(), text(12), word(), word(), word(), text(8))
			own = append(own, search.Document{
				ID: "mcp." + server.Name + "." + name, Name: name, Title: text(3), Description: text(12) + ". " + text(40),
				Schema: json.RawMessage(schema),
			})
		}
		servers, docs = append(servers, server), append(docs, own)
	}
	return servers, docs
}

func fill(x *search.Index, servers []search.Server, docs [][]search.Document) *search.Index {
	for i, s := range servers {
		x.Put(s, docs[i])
	}
	return x
}

// questions are of up to forty words that tools have, with some that none has and some that are misspelt.
func questions(docs [][]search.Document) []string {
	r := rand.New(rand.NewPCG(3, 4))
	var out []string
	for i := range 200 {
		d := docs[r.IntN(len(docs))][r.IntN(22)]
		have := strings.Fields(d.Description)
		n := 2 + i%20
		q := "please " + d.Title + " " + strings.Join(have[:min(n, len(have))], " ")
		if i%3 == 0 {
			q += " proseware and zqwertz in the pfilchen"
		}
		out = append(out, q)
	}
	return out
}

func BenchmarkSearch(b *testing.B) {
	servers, docs := invent(manyTools)
	x := fill(search.New(search.Options{}), servers, docs)
	asked := questions(docs)
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		if a := x.Search(context.Background(), search.Query{Text: asked[i%len(asked)]}); len(a.Hits) == 0 {
			b.Fatalf("nothing found for %q", asked[i%len(asked)])
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
}

func BenchmarkBuild1000(b *testing.B) {
	servers, docs := invent(1000)
	for b.Loop() {
		fill(search.New(search.Options{}), servers, docs)
	}
}

// BenchmarkMemory1000 reports what 1,000 tools take beside their own texts, which the caller holds anyway.
func BenchmarkMemory1000(b *testing.B) {
	servers, docs := invent(1000)
	for b.Loop() {
		before := heap()
		x := fill(search.New(search.Options{}), servers, docs)
		b.ReportMetric(float64(heap()-before)/1e6, "MB")
		runtime.KeepAlive(x)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// hostile are questions and patterns written to take long.
func hostile(docs [][]search.Document) (texts, patterns []string) {
	counts := make(map[string]int)
	for _, own := range docs {
		for _, d := range own {
			for w := range strings.FieldsSeq(d.Description) {
				counts[w]++
			}
		}
	}
	common := make([]string, 0, len(counts))
	for w := range counts {
		common = append(common, w)
	}
	slices.SortFunc(common, func(a, b string) int { return counts[b] - counts[a] })
	junk := make([]string, 1500)
	for i := range junk {
		junk[i] = fmt.Sprintf("x%cq%cz%c", 'a'+i%26, 'a'+i/26%26, 'a'+i/676)
	}
	texts = []string{
		strings.Join(common[:1600], " "), strings.Join(junk, " "), strings.Repeat("a", 10_000), strings.Repeat("create list get ", 700),
		strings.Repeat("_", 10_000), strings.Repeat("aB", 5_000), strings.Repeat("必应搜索", 900), strings.Repeat("\x00\xff ", 3_000),
	}
	patterns = []string{
		"(" + strings.Join(junk[:1000], "|") + ")", "(?i)(" + strings.Join(junk[:100], "|") + ")", `(a|b|c|d|e)*f`, `(?i).*(a.*){20}z`,
		`([a-z]+ )*[0-9]{50}`, `.`, `(?i)` + common[0], `[a-z]+_[a-z]+.*zzzz`,
		strings.Repeat("a{999}b{999}", 83), strings.Repeat(`\pL{999}`, 111), strings.Repeat(`\PL`, 333), strings.Repeat(`[^x]{4}`, 50),
	}
	return texts, patterns
}

func BenchmarkHostile(b *testing.B) {
	servers, docs := invent(manyTools)
	x := fill(search.New(search.Options{}), servers, docs)
	texts, patterns := hostile(docs)
	slowest := time.Duration(0)
	for b.Loop() {
		for _, text := range texts {
			start := time.Now()
			x.Search(context.Background(), search.Query{Text: text})
			slowest = max(slowest, time.Since(start))
			b.Log(len(text), text[:10], time.Since(start))
		}
		for _, expression := range patterns {
			start := time.Now()
			if p, err := search.ReadPattern(expression); err == nil {
				x.Regexp(context.Background(), p, search.Query{})
			}
			slowest = max(slowest, time.Since(start))
			b.Log(expression[:min(10, len(expression))], time.Since(start))
		}
		for _, name := range append(texts, docs[0][0].Name+"x") {
			start := time.Now()
			x.Nearest(name, 3, nil)
			slowest = max(slowest, time.Since(start))
			b.Log("nearest", name[:10], time.Since(start))
		}
	}
	b.ReportMetric(float64(slowest.Microseconds())/1000, "slowest-ms")
}
