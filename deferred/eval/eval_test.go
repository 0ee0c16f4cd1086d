package eval_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/deferred/eval"
)

const tools = `{"server":"a","name":"red","description":"apple"}
{"server":"a","name":"green","description":"apple pear"}
{"server":"b","name":"blue","description":"plum"}`

func TestFiguresOfKnownAnswers(t *testing.T) {
	t.Parallel()
	c, err := eval.ReadCatalog(strings.NewReader(tools))
	if err != nil {
		t.Fatal(err)
	}
	queries, err := eval.ReadQueries(strings.NewReader(`{"query":"plum","gold_groups":[["b.blue","x.y"]],"kind":"one"}
{"query":"plum","gold_groups":[["b.blue"],["a.red"]],"kind":"half"}
{"query":"pear","gold":["a.red"],"kind":"neighbour"}`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := eval.Bench{Catalog: c, Queries: queries, Tokens: func(b []byte) int { return len(b) }}.Run(context.Background(), c.Index())
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Kinds["one"]; f.Recall1 != 1 || f.NDCG5 != 1 || f.MRR != 1 || f.InView != 1 {
		t.Errorf("found at once: %+v", f)
	}
	if f := r.Kinds["half"]; f.Recall1 != 0.5 || f.Recall10 != 0.5 || f.MRR != 1 || f.NDCG5 != 0.6131 {
		t.Errorf("one of two: %+v", f)
	}
	if f := r.Kinds["neighbour"]; f.Recall10 != 0 || f.InView != 1 {
		t.Errorf("a neighbour of what was found: %+v", f)
	}
	if r.Overall.Recall5 != 0.5 || len(r.Misses) != 2 || r.Tokens.FullList == 0 || r.Tokens.Answer == 0 {
		t.Errorf("%+v", r)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (eval.Bench{Catalog: c, Queries: queries}).Run(ctx, c.Index()); err == nil {
		t.Error("canceled, and measured")
	}
}

func FuzzRead(f *testing.F) {
	f.Add(tools)
	f.Add(`{"query":"a","gold":["x"]}`)
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = eval.ReadCatalog(strings.NewReader(text))
		_, _ = eval.ReadQueries(strings.NewReader(text))
	})
}
