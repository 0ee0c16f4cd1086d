package deferred

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

func matchNames(r searchResult) string {
	var out []string
	for _, m := range r.Matches {
		out = append(out, m.Name)
	}
	return strings.Join(out, " ")
}

func TestSearch(t *testing.T) {
	t.Parallel()
	cfg := always()
	cfg.Hints = []Hint{{Match: "mcp.shop.refund", Text: "chargeback reimburse"}}
	cfg.Default.AlwaysLoad = []string{"mcp.mail.list_folders"}
	tools := append(shop(), newTool("zoo", "feed", "Feeds animals.", "",
		`"_meta":{"anthropic/searchHint":"nourish creatures"},"icons":[{"src":"data:,x"}],"outputSchema":{"type":"object"}`))
	l := newLoader(t, cfg, Options{}, tools)
	s := l.Surface(surfaceOf("p", tools, nil), tool.Client{})
	for query, want := range map[string]struct{ kind, names, missing, next string }{
		`{"query":"send an e-mail","limit":1}`:                      {queryKeyword, "mcp.mail.send_message", "", "call"},
		`{"query":"send an e-mail","limit":1,"detail":"signature"}`: {queryKeyword, "mcp.mail.send_message", "", "call"},
		`{"query":"chargeback"}`:                                    {queryKeyword, "mcp.shop.refund", "", "call"},
		`{"query":"nourish"}`:                                       {queryKeyword, "mcp.zoo.feed", "", "call"},
		`{"query":"mcp.zoo.feed","limit":1}`:                        {queryKeyword, "mcp.zoo.feed", "", "call"},
		`{"query":"reimburse","limit":1}`:                           {queryKeyword, "mcp.shop.refund", "", "call"},
		`{"query":"order","servers":[" Zoo"]}`:                      {queryKeyword, "", "", "rephrase"},
		`{"query":"xyzzy"}`:                                         {queryKeyword, "", "", "rephrase"},
		`{"query":"select:mcp.zoo.feed, Search-Orders"}`:            {querySelect, "mcp.zoo.feed mcp.shop.search_orders", "", "call"},
		`{"query":"SELECT:refund"}`:                                 {querySelect, "mcp.shop.refund", "", "call"},
		`{"query":" Select : mcp.zoo.feed"}`:                        {querySelect, "mcp.zoo.feed", "", "call"},
		`{"query":"select:serch_orders"}`:                           {querySelect, "", "serch_orders", "select"},
		`{"query":"select:tool_search,mcp.zoo.feed"}`:               {querySelect, "mcp.zoo.feed", "tool_search", "call"},
		`{"query":"select:feed","servers":["mail"]}`:                {querySelect, "", "feed", "select"},
		`{"query":"select:mcp.zoo.feed","servers":["mail"]}`:        {querySelect, "", "mcp.zoo.feed", "select"},
		`{"query":"select:feed,feed,mcp.zoo.feed"}`:                 {querySelect, "mcp.zoo.feed", "", "call"},
		`{"query":"regex:^(refund|feed)$","limit":50}`:              {queryRegex, "mcp.shop.refund mcp.zoo.feed", "", "call"},
		`{"query":"regex:nothing+"}`:                                {queryRegex, "", "", "rephrase"},
		`{"query":"select:mcp.mail.list_folders"}`:                  {querySelect, "mcp.mail.list_folders", "", "call"},
	} {
		r, text := ask(t, l, s, query, nil, nil)
		var missed []string
		for _, m := range r.Missing {
			missed = append(missed, m.Name)
		}
		if r.QueryType != want.kind || matchNames(r) != want.names || strings.Join(missed, " ") != want.missing || r.Next.Action != want.next {
			t.Errorf("%s: %s: %s; missing %q; next %+v", query, r.QueryType, matchNames(r), missed, r.Next)
		}
		if r.TotalDeferred != 5 || r.Object != "tool_search_result" || r.Pending == nil || r.Neighbours == nil || r.Matches == nil || r.Missing == nil {
			t.Errorf("%s: %+v", query, r)
		}
		for _, m := range r.Matches {
			if !strings.Contains(text, m.Ref) || len(m.Why) == 0 || m.Score <= 0 {
				t.Errorf("%s: %+v in %s", query, m, text)
			}
		}
	}
	r, _ := ask(t, l, s, `{"query":"select:serch_orders"}`, nil, nil)
	if !slices.Contains(r.Missing[0].Nearest, "mcp.shop.search_orders") || !slices.Contains(r.Next.Names, "mcp.shop.search_orders") {
		t.Errorf("nearest: %+v", r.Missing)
	}
	for _, bad := range []string{`{"query":"regex:("}`, `{"query":"regex:"}`, `{"query":"regex:` + strings.Repeat("a", 1001) + `"}`,
		`{"query":"regex:((((a{900}){900}){900}){900})"}`, `{"query":"  "}`, `{"query":"select: , "}`, `{"query":"select:` + strings.Repeat("a,", maxSelected+1) + `"}`,
		`{"query":7}`} {
		_, err := l.search(t.Context(), &tool.Execution{Surface: s, Actor: ann(), Arguments: json.RawMessage(bad)})
		var f *tool.Failure
		if !errors.As(err, &f) || f.Class != tool.ClassInvalidArguments {
			t.Errorf("%.40s: %v", bad, err)
		}
	}
}

// TestDetail: what of a tool is told, what that loads, and what is recorded.
func TestDetail(t *testing.T) {
	t.Parallel()
	tools := append(shop(), newTool("zoo", "feed", "Feeds animals.\nAt length.", "",
		`"_meta":{"x":1},"icons":[],"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":false}`))
	l := newLoader(t, always(), Options{}, tools)
	s := l.Surface(surfaceOf("p", tools, nil), tool.Client{})
	for detail, want := range map[string]struct {
		match  match
		loaded bool
		events []string
	}{
		"full": {match{State: "loaded", Declaration: json.RawMessage(`{"name":"mcp.zoo.feed","description":"Feeds animals.\nAt length.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}},"annotations":{"readOnlyHint":false}}`)}, true,
			[]string{"tool.deferred.discovered", "tool.deferred.loaded"}},
		"signature": {match{State: "discoverable", Signature: "mcp.zoo.feed(text?: string)", Summary: "Feeds animals."}, false, []string{"tool.deferred.discovered"}},
		"names":     {match{State: "discoverable"}, false, []string{"tool.deferred.discovered"}},
	} {
		var j journal
		loaded := session{}
		r, _ := ask(t, l, s, fmt.Sprintf(`{"query":"select:feed","detail":%q}`, detail), loaded, &j)
		want.match.Name, want.match.ToolID, want.match.Server, want.match.Score, want.match.Why = "mcp.zoo.feed", "mcp.zoo.feed", "zoo", 1, []string{"name"}
		want.match.Ref = r.Matches[0].Ref
		if !reflect.DeepEqual(r.Matches[0], want.match) {
			t.Errorf("%s: %s\nwant %s", detail, jsonOf(r.Matches[0]), jsonOf(want.match))
		}
		if _, ok := loaded["mcp.zoo.feed"]; ok != want.loaded {
			t.Errorf("%s: loaded: %v", detail, loaded)
		}
		if got := j.events(); !slices.Equal(got, want.events) {
			t.Errorf("%s: %q", detail, got)
		}
		checkSchemas(t, j.all)
		if _, err := l.Admit(callOf(t, s, "mcp.zoo.feed", want.match.Ref, nil)); err != nil {
			t.Errorf("%s: its ref does not serve: %v", detail, err)
		}
	}
}

// TestLongDeclarations: a tool that is long beyond reason is found, and its declaration comes when it is asked for by name.
func TestLongDeclarations(t *testing.T) {
	t.Parallel()
	long := `{"type":"object","properties":{` + strings.Repeat(`"quagga":{"type":"string"},`, 6000) + `"a":{"type":"string"}}}`
	tools := []*tool.Tool{newTool("zoo", "a", "Feeds a quokka.", "", ""), newTool("zoo", "b", "Feeds a quokka, too.", long, ""),
		newTool("zoo", "c", "Feeds another quokka. "+strings.Repeat("At length. ", 10_000), "", "")}
	l := newLoader(t, always(), Options{}, tools)
	s := l.Surface(surfaceOf("p", tools, nil), tool.Client{})
	for query, whole := range map[string]int{"quokka": 1, "regex:quokka": 1, "select:a,b,c": 3} {
		loaded := session{}
		r, text := ask(t, l, s, fmt.Sprintf(`{"query":%q}`, query), loaded, nil)
		declared := 0
		for _, m := range r.Matches {
			switch {
			case m.Declaration != nil && m.State == "loaded" && strings.Contains(text, string(m.Declaration)):
				declared++
			case m.Declaration != nil || m.State != "discoverable" || m.Signature == "" || !strings.Contains(text, m.Signature):
				t.Errorf("%s: %.500s", query, jsonOf(m))
			}
		}
		if len(r.Matches) != 3 || declared != whole || len(loaded) != whole {
			t.Errorf("%s: %d found, %d declared, %d loaded", query, len(r.Matches), declared, len(loaded))
		}
		if said := strings.Contains(text, "2 of the tools have a signature"); said != (whole == 1) || said && len(text) > 20_000 {
			t.Errorf("%s: %d bytes: %.500s", query, len(text), text)
		}
	}
}

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// TestHidden: to a caller who may not see them, tools and servers are as if they did not exist.
func TestHidden(t *testing.T) {
	t.Parallel()
	all := shop()
	seen := all[:2] // of mail; shop is hidden
	with, without := newLoader(t, always(), Options{Keys: [][]byte{[]byte("k")}}, all), newLoader(t, always(), Options{Keys: [][]byte{[]byte("k")}}, seen)
	for _, query := range []string{`{"query":"orders of customers"}`, `{"query":"mcp.shop.refund"}`, `{"query":"select:mcp.shop.refund,refund,search_order"}`,
		`{"query":"regex:.*"}`, `{"query":"order","servers":["shop"]}`, `{"query":"order","servers":["no such server"]}`, `{"query":"message"}`, `{"query":"send a mesage to customers"}`,
		`{"query":"folders of shop"}`, `{"query":"sends an order"}`, `{"query":"list mailbox refnd"}`} {
		a, textA := ask(t, with, with.Surface(surfaceOf("p", seen, nil), tool.Client{}), query, nil, nil)
		b, textB := ask(t, without, without.Surface(surfaceOf("p", seen, nil), tool.Client{}), query, nil, nil)
		if jsonOf(a) != jsonOf(b) || textA != textB {
			t.Errorf("%s tells them apart:\n%s\n%s", query, jsonOf(a), jsonOf(b))
		}
	}
	s := with.Surface(surfaceOf("p", seen, nil), tool.Client{})
	if strings.Contains(s.Listed[0].Tool.Description, "shop") {
		t.Errorf("the description names a hidden server: %s", s.Listed[0].Tool.Description)
	}
	if _, ok := s.Resolve("mcp.shop.refund"); ok {
		t.Error("a hidden tool resolves")
	}
	cfg := always()
	cfg.Hints = []Hint{{Match: "mcp.mail.list_folders", Text: "mcp.shop.refund"}} // the name of a hidden one
	aliased := newLoader(t, cfg, Options{}, all)
	s = aliased.Surface(surfaceOf("p", seen, nil), tool.Client{})
	if r, _ := ask(t, aliased, s, `{"query":"order"}`, nil, nil); len(r.Matches) != 0 {
		t.Errorf("what is said of a hidden tool finds %s", matchNames(r))
	}
}

// TestHints: hints count in all profiles, and names that a profile gives are found.
func TestHints(t *testing.T) {
	t.Parallel()
	tools := shop()
	cfg := Config{Default: Settings{Mode: ModeAlways}, Hints: []Hint{
		{Match: "mcp.mail.*", Text: "zebra"}, {Match: "mcp.gone.away", Text: "zebra"}}}
	l := newLoader(t, cfg, Options{}, tools)
	named := func(t *tool.Tool) string {
		if t.Native == "refund" {
			return "money_back"
		}
		return string(t.Name)
	}
	own, other := l.Surface(surfaceOf("own", tools, named), tool.Client{}), l.Surface(surfaceOf("other", tools, nil), tool.Client{})
	if r, _ := ask(t, l, own, `{"query":"zebra"}`, nil, nil); len(r.Matches) != 2 {
		t.Errorf("zebra: %s", matchNames(r))
	}
	if r, _ := ask(t, l, other, `{"query":"zebra"}`, nil, nil); len(r.Matches) != 2 {
		t.Errorf("zebra elsewhere: %s", matchNames(r))
	}
	if r, _ := ask(t, l, own, `{"query":"regex:^mcp\\.mail\\.send|^MONEY"}`, nil, nil); matchNames(r) != "mcp.mail.send_message money_back" {
		t.Errorf("by the names that are shown: %s", matchNames(r))
	}
	if r, _ := ask(t, l, own, `{"query":"money_back","limit":1}`, nil, nil); matchNames(r) != "money_back" {
		t.Errorf("money_back: %s", matchNames(r))
	}
	l.Update(catalogsOf(tools[2:]))
	if r, _ := ask(t, l, l.Surface(surfaceOf("own", tools[2:], nil), tool.Client{}), `{"query":"zebra"}`, nil, nil); len(r.Matches) != 0 {
		t.Errorf("zebra after mail has gone: %s", matchNames(r))
	}
	if n := l.index.Len(); n != 3 {
		t.Errorf("%d tools are indexed after mail has gone", n)
	}
}

// meaning is one for which "zebra" means whatever its texts hold the word "stripes" in.
type meaning struct {
	mu    sync.Mutex
	texts map[string]string
	tools map[string][]string
}

func (m *meaning) Put(s search.Server, docs []search.Document) {
	m.Remove(s.Name)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range docs {
		m.texts[d.ID] = d.Description + d.Hint
		m.tools[s.Name] = append(m.tools[s.Name], d.ID)
	}
}

func (m *meaning) Remove(server string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range m.tools[server] {
		delete(m.texts, id)
	}
	delete(m.tools, server)
}

func (m *meaning) Near(_ context.Context, text string, _ int, within func(string) bool) (ids []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, about := range m.texts {
		if strings.Contains(text, "zebra") && strings.Contains(about, "stripes") && (within == nil || within(id)) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// TestMeaning: all profiles are searched by meaning, too, and what has gone means nothing.
func TestMeaning(t *testing.T) {
	t.Parallel()
	tools := append(shop(), newTool("zoo", "feed", "Feeds what has stripes.", "", ""), newTool("zoo", "wash", "Washes stripes.", "", ""))
	cfg := Config{Default: Settings{Mode: ModeAlways}, Hints: []Hint{{Match: "mcp.mail.*", Text: "zebra"}}}
	m := &meaning{texts: map[string]string{}, tools: map[string][]string{}}
	l := newLoader(t, cfg, Options{Search: search.Options{Meaning: m}}, tools)
	found := func(profile string, tools []*tool.Tool) string {
		r, _ := ask(t, l, l.Surface(surfaceOf(profile, tools, nil), tool.Client{}), `{"query":"zebra","limit":9}`, nil, nil)
		names := strings.Fields(matchNames(r))
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	for _, c := range []struct {
		profile string
		tools   []*tool.Tool
		want    string
	}{
		{"own", tools, "mcp.mail.list_folders mcp.mail.send_message mcp.zoo.feed mcp.zoo.wash"},
		{"other", tools[2:], "mcp.zoo.feed mcp.zoo.wash"},
		{"few", tools[2:6], "mcp.zoo.feed"},
	} {
		if got := found(c.profile, c.tools); got != c.want {
			t.Errorf("zebra for %s: %s", c.profile, got)
		}
	}
	l.Update(catalogsOf(tools[:6]))
	if got := found("other", tools[2:]); got != "mcp.zoo.feed" {
		t.Errorf("after a tool has gone: %s", got)
	}
	l.Update(catalogsOf(shop()))
	if got := found("own", tools); got != "mcp.mail.list_folders mcp.mail.send_message" {
		t.Errorf("after the zoo has gone: %s", got)
	}
	cfg.Hints = []Hint{{Match: "mcp.shop.refund", Text: "stripes"}}
	l.Apply(cfg)
	if got := found("other", shop()); got != "mcp.shop.refund" {
		t.Errorf("with another hint: %s", got)
	}
}

// TestPending: servers that have not answered yet are named, those that the caller sees.
func TestPending(t *testing.T) {
	t.Parallel()
	tools := shop()
	l := New(always(), Options{})
	catalogs := append(catalogsOf(tools), tool.Catalog{Server: "hidden", Source: tool.SourceMCP, Pending: true})
	catalogs[1].Pending = true // listed from an earlier start
	l.Update(catalogs)
	s := l.Surface(surfaceOf("p", tools, nil), tool.Client{})
	var j journal
	r, text := ask(t, l, s, `{"query":"xyzzy"}`, nil, nil)
	if !slices.Equal(r.Pending, []string{"shop"}) || r.Next.Action != "wait" || !strings.Contains(text, "shop") {
		t.Errorf("%+v", r)
	}
	if r, _ = ask(t, l, s, `{"query":"select:refund"}`, nil, &j); len(r.Matches) != 1 {
		t.Fatalf("%+v", r)
	}
	if ref := j.all[0].(tool.DeferredRef); ref.LoadingState != tool.LoadingPending || ref.Pending != "shop" {
		t.Errorf("%+v", ref)
	}
	checkSchemas(t, j.all)
}

// TestServersThatNeedSomebody: of a server that does not answer before somebody has done something, the answer says what that
// is, and not that it comes in a moment.
func TestServersThatNeedSomebody(t *testing.T) {
	t.Parallel()
	tools := shop()
	l := New(always(), Options{Needs: func(server string, caller tool.Session) string {
		if server == "mail" && caller.Person == "ann" {
			return "a sign-in of ann"
		}
		return ""
	}})
	catalogs := append(catalogsOf(tools), tool.Catalog{Server: "hidden", Source: tool.SourceMCP, Pending: true, Needs: "a secret"})
	catalogs[1].Pending, catalogs[1].Needs = true, "a sign-in: set the credentials"
	l.Update(catalogs)
	s := l.Surface(surfaceOf("p", tools, nil), tool.Client{})
	r, text := ask(t, l, s, `{"query":"xyzzy"}`, nil, nil)
	if len(r.Pending) > 0 || !slices.Equal(r.Unavailable, []unavailable{{"shop", "a sign-in: set the credentials"}}) ||
		r.Next.Action != "rephrase" || !strings.Contains(r.Next.Hint, "what that server needs") ||
		!strings.Contains(text, "shop needs a sign-in: set the credentials") || strings.Contains(text, "in a moment") ||
		strings.Contains(text, "secret") {
		t.Errorf("%+v\n%s", r, text)
	}
	if pending, down := l.waits(s, tool.Session{Person: "ann"}); len(pending) > 0 || len(down) != 2 || down[0] != (unavailable{"mail", "a sign-in of ann"}) {
		t.Errorf("pending %q, down %q", pending, down)
	}
}

// TestServerThatIsNotThere: a query for tools of a server that is not there says so, and which is meant.
func TestServerThatIsNotThere(t *testing.T) {
	t.Parallel()
	tools := shop()
	l := newLoader(t, always(), Options{}, tools)
	s := l.Surface(surfaceOf("p", tools, nil), tool.Client{})
	for query, want := range map[string]string{
		`{"query":"order","servers":["nope"]}`:        `There is no server "nope" here: use some of mail, shop`,
		`{"query":"order","servers":["shop","mial"]}`: `There is no server "mial" here: did you mean "mail"?`,
		`{"query":"regex:.","servers":["nope"]}`:      `There is no server "nope" here`,
		`{"query":"select:refund","servers":["no"]}`:  `There is no server "no" here`,
	} {
		if r, text := ask(t, l, s, query, nil, nil); !strings.Contains(text, want) || !strings.HasPrefix(r.Notes[0], want) ||
			len(r.Matches) == 0 && r.Next.Hint != "name servers that are there, or none" {
			t.Errorf("%s: %+v\n%s", query, r, text)
		}
	}
	if r, _ := ask(t, l, s, `{"query":"order","servers":["Shop"]}`, nil, nil); len(r.Notes) > 0 || len(r.Matches) == 0 {
		t.Errorf("%+v", r)
	}
}

// TestAtOnce: searches, splits and updates do not wait for each other in a circle, and none sees half of another.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	tools := shop()
	l := newLoader(t, always(), Options{}, tools)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 30 {
				some := tools[:2+(i+n)%4]
				switch (i + n) % 4 {
				case 0:
					l.Update(catalogsOf(some))
				case 1:
					l.Apply(always())
				default:
					s := l.Surface(surfaceOf(fmt.Sprint("p", n%3), some, nil), tool.Client{})
					ask(t, l, s, `{"query":"an order or a message"}`, session{}, &journal{})
				}
			}
		})
	}
	all.Wait()
}

// TestCallOfItself: tool_call that stands for nothing says so.
func TestCallOfItself(t *testing.T) {
	t.Parallel()
	l := newLoader(t, always(), Options{}, shop())
	_, err := l.opts.HubTools[1].Execute(t.Context(), &tool.Execution{Arguments: json.RawMessage(`{"name":"tool_call"}`)})
	var f *tool.Failure
	if !errors.As(err, &f) || f.Class != tool.ClassInvalidArguments {
		t.Error(err)
	}
}
