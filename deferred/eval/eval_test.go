package eval_test

import (
	"context"
	"encoding/json"
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
{"query":"apple","gold":["a.red"],"kind":"second"}`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := eval.Bench{Catalog: c, Queries: queries, Tokens: func(d json.RawMessage) int { return len(d) },
		AnswerTokens: func(found ...json.RawMessage) int { return len(found) }}.Run(context.Background(), c.Index())
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Kinds["one"]; f.Recall1 != 1 || f.NDCG5 != 1 || f.MRR != 1 || f.InView != 1 {
		t.Errorf("found at once: %+v", f)
	}
	if f := r.Kinds["half"]; f.Recall1 != 0.5 || f.Callable != 0.5 || f.MRR != 1 || f.NDCG5 != 0.6131 {
		t.Errorf("one of two: %+v", f)
	}
	if f := r.Kinds["second"]; f.Recall1 != 0 || f.Recall3 != 1 || f.Callable != 1 || f.InView != 1 {
		t.Errorf("the second: %+v", f)
	}
	if r.Overall.Recall5 != 0.8333 || len(r.Misses) != 1 || r.Tokens.FullList == 0 || r.Tokens.Answer != 1.3333 {
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
