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
	for query, want := range map[string]struct{ names, missing, next string }{
		`{"query":"send an e-mail","limit":1}`:               {"mcp.mail.send_message", "", "call"},
		`{"query":"chargeback"}`:                             {"mcp.shop.refund", "", "call"},
		`{"query":"nourish"}`:                                {"mcp.zoo.feed", "", "call"},
		`{"query":"mcp.zoo.feed","limit":1}`:                 {"mcp.zoo.feed", "", "call"},
		`{"query":"reimburse","limit":1}`:                    {"mcp.shop.refund", "", "call"},
		`{"query":"order","servers":[" Zoo"]}`:               {"", "", "rephrase"},
		`{"query":"xyzzy"}`:                                  {"", "", "rephrase"},
		`{"query":"select:mcp.zoo.feed, Search-Orders"}`:     {"mcp.zoo.feed mcp.shop.search_orders", "", "call"},
		`{"query":"SELECT:refund"}`:                          {"mcp.shop.refund", "", "call"},
		`{"query":" Select : mcp.zoo.feed"}`:                 {"mcp.zoo.feed", "", "call"},
		`{"query":"select:serch_orders"}`:                    {"", "serch_orders", "select"},
		`{"query":"select:tool_search,mcp.zoo.feed"}`:        {"mcp.zoo.feed", "tool_search", "call"},
		`{"query":"select:feed","servers":["mail"]}`:         {"", "feed", "select"},
		`{"query":"select:mcp.zoo.feed","servers":["mail"]}`: {"", "mcp.zoo.feed", "select"},
		`{"query":"select:feed,feed,mcp.zoo.feed"}`:          {"mcp.zoo.feed", "", "call"},
		`{"query":"regex:^(refund|feed)$","limit":50}`:       {"mcp.shop.refund mcp.zoo.feed", "", "call"},
		`{"query":"regex:nothing+"}`:                         {"", "", "rephrase"},
		`{"query":"select:mcp.mail.list_folders"}`:           {"mcp.mail.list_folders", "", "call"},
	} {
		r, text := ask(t, l, s, query, nil, nil)
		var missed []string
		for _, m := range r.Missing {
			missed = append(missed, m.Name)
		}
		if matchNames(r) != want.names || strings.Join(missed, " ") != want.missing || r.Next.Action != want.next {
			t.Errorf("%s: %s; missing %q; next %+v", query, matchNames(r), missed, r.Next)
		}
		if r.TotalDeferred != 5 || r.Pending == nil || r.Matches == nil {
			t.Errorf("%s: %+v", query, r)
		}
		for _, m := range r.Matches {
			if !strings.Contains(text, m.Ref) || m.Ref == "" || m.Why != nil || m.Score != 0 {
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

// TestAnswer: what each place of an answer has, what that loads, and what is recorded.
func TestAnswer(t *testing.T) {
	t.Parallel()
	tools := append(shop(), newTool("zoo", "feed", "Feeds animals.\nAt length.", "",
		`"_meta":{"x":1},"icons":[],"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":false}`))
	for i := range 30 {
		tools = append(tools, newTool("farm", fmt.Sprintf("feed_%02d", i), "Feeds an animal of the farm.", "", ""))
	}
	l := newLoader(t, always(), Options{}, tools)
	s := l.Surface(surfaceOf("p", tools, nil), tool.Client{})
	feed := json.RawMessage(`{"name":"mcp.zoo.feed","description":"Feeds animals.\nAt length.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}},"annotations":{"readOnlyHint":false}}`)
	var j journal
	loaded := session{}
	r, text := ask(t, l, s, `{"query":"mcp.zoo.feed"}`, loaded, &j)
	first := match{Name: "mcp.zoo.feed", Ref: r.Matches[0].Ref, Declaration: feed}
	second := match{Name: "mcp.farm.feed_00", Ref: r.Matches[1].Ref, Signature: "(text?: string)", Summary: "Feeds an animal of the farm."}
	if !reflect.DeepEqual(r.Matches[0], first) || !reflect.DeepEqual(r.Matches[1], second) {
		t.Errorf("%s\nwant %s %s", jsonOf(r.Matches), jsonOf(first), jsonOf(second))
	}
	if len(r.Matches) != callable || len(r.More) != defaultLimit-callable || len(loaded) != 1 || loaded["mcp.zoo.feed"] == "" {
		t.Errorf("%d can be called, %d more are named, loaded: %v", len(r.Matches), len(r.More), loaded)
	}
	for _, m := range r.Matches {
		if _, err := l.Admit(callOf(t, s, m.Name, m.Ref, nil)); err != nil {
			t.Errorf("%s: its ref does not serve: %v", m.Name, err)
		}
	}
	for _, want := range append([]string{string(feed), "\nmcp.farm.feed_00(text?: string)\nFeeds an animal of the farm.\nselection_ref: " + second.Ref}, r.More...) {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if got := j.events(); len(got) != callable+1 || !slices.Equal(got[:3], []string{"tool.deferred.discovered", "tool.deferred.loaded", "tool.deferred.discovered"}) {
		t.Errorf("%q", got)
	}
	checkSchemas(t, j.all)
	if r, _ := ask(t, l, s, `{"query":"feed","limit":3}`, nil, nil); len(r.Matches) != 3 || len(r.More) != 0 {
		t.Errorf("of three: %s", jsonOf(r))
	}
	if r, _ := ask(t, l, s, `{"query":"select:feed_00,feed_01,feed_02"}`, nil, nil); len(r.Matches) != 3 || r.Matches[2].Declaration == nil {
		t.Errorf("by name: %s", jsonOf(r))
	}
	e := &tool.Execution{Surface: s, Actor: tool.Actor{Client: tool.Client{Name: "mcp-toolhub"}}, Arguments: json.RawMessage(`{"query":"feed"}`)}
	reply, err := l.opts.HubTools[0].Execute(t.Context(), e)
	var people struct{ StructuredContent searchResult }
	if err != nil || json.Unmarshal(reply.Result, &people) != nil || len(people.StructuredContent.Matches) != defaultLimit ||
		people.StructuredContent.Matches[20].Score <= 0 || people.StructuredContent.Matches[20].Summary == "" {
		t.Errorf("for people: %s %v", reply.Result, err)
	}
}

// TestNothingFits: a question about something else is answered in short, and a program can tell.
func TestNothingFits(t *testing.T) {
	t.Parallel()
	l := newLoader(t, always(), Options{}, shop())
	s := l.Surface(surfaceOf("p", shop(), nil), tool.Client{})
	r, text := ask(t, l, s, `{"query":"Book a table at the customers' favourite restaurant tonight"}`, nil, nil)
	if len(r.Matches) != 0 || !slices.Equal(r.More, []string{"mcp.shop.search_orders"}) || r.Next.Action != "rephrase" ||
		!strings.HasPrefix(text, "Nothing fits among 5 deferred tools. The nearest are (select:NAME gets one): mcp.shop.search_orders.\nNext: ") {
		t.Errorf("%s\n%s", jsonOf(r), text)
	}
}

// TestLongDeclarations: an answer costs no more than promised whatever the tools are, and each declaration can be got by name.
func TestLongDeclarations(t *testing.T) {
	t.Parallel()
	long := `{"type":"object","properties":{` + strings.Repeat(`"quagga":{"type":"string"},`, 6000) + `"a":{"type":"string"}}}`
	odd := `{"type":"object","properties":{"quagga":{"enum":["` + strings.Repeat("a1", 18) + `","` + strings.Repeat("b2", 18) + `","` + strings.Repeat("c3", 18) + `"]}}}`
	tools := []*tool.Tool{newTool("zoo", "b", "Feeds a quokka, too.", long, "")}
	for i := range 40 {
		tools = append(tools, newTool("zoo", fmt.Sprint(strings.Repeat("a1_", 30), i), "Feeds another quokka "+strings.Repeat("a1", 1000), odd, ""))
	}
	l := newLoader(t, always(), Options{}, tools)
	s := l.Surface(surfaceOf("p", tools, nil), tool.Client{})
	for query, declared := range map[string]int{"quokka": 0, "regex:quokka": 0, "select:b": 1, "select:b,b": 1} {
		r, text := ask(t, l, s, fmt.Sprintf(`{"query":%q}`, query), nil, nil)
		got := 0
		for _, m := range r.Matches {
			if m.Declaration != nil {
				got++
			} else if m.Signature == "" || m.Ref == "" || !strings.Contains(text, m.Signature) {
				t.Errorf("%s: %.500s", query, jsonOf(m))
			}
		}
		if got != declared || declared == 0 && !strings.Contains(text, "is too long for this answer: select:") {
			t.Errorf("%s: %d declared: %.500s", query, got, text)
		}
		if declared == 0 && (len(r.Matches) != callable || tokensOf([]byte(text)) > 4000 || tokensOf([]byte(jsonOf(r))) > 4000) {
			t.Errorf("%s: %d matches, %d tokens, and %d structured", query, len(r.Matches), tokensOf([]byte(text)), tokensOf([]byte(jsonOf(r))))
		}
	}
	r, _ := ask(t, l, s, `{"query":"select:b,`+tools[1].Native+`"}`, nil, nil)
	if len(r.Matches) != 2 || r.Matches[0].Declaration == nil || r.Matches[1].Declaration != nil || len(r.Notes) != 1 {
		t.Errorf("a long one and another: %.300s", jsonOf(r.Matches[1]))
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
	if names := l.index.Names("mcp.mail.send_message", nil); len(names) != 0 {
		t.Errorf("%q is indexed after mail has gone", names)
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
