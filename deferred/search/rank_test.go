package search_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
)

// office is a small catalog of the usual kinds of server.
func office(o search.Options) *search.Index {
	x := search.New(o)
	x.Put(search.Server{Name: "slack", Description: "Talk to your Slack workspace."}, []search.Document{
		{ID: "mcp.slack.post_message", Name: "post_message", Description: "Post a message to a channel."},
		{ID: "mcp.slack.list_channels", Name: "list_channels", Description: "List the channels of the workspace."},
		{ID: "mcp.slack.add_reaction", Name: "add_reaction", Description: "Add an emoji reaction to a message."},
	})
	x.Put(search.Server{Name: "teams", Description: "Microsoft's chat."}, []search.Document{
		{ID: "mcp.teams.postMessage", Name: "postMessage", Description: "Post a message to a channel."},
	})
	x.Put(search.Server{Name: "code", Title: "Code host"}, []search.Document{
		{ID: "mcp.code.create_pull_request", Name: "create_pull_request", Description: "Create a new pull request."},
		{ID: "mcp.code.delete_repository", Name: "delete_repository", Description: "Delete a repository with all its issues."},
		{ID: "mcp.code.get_repository", Name: "get_repository", Description: "Get the details of a repository."},
	})
	x.Put(search.Server{Name: "db"}, []search.Document{
		{ID: "mcp.db.run_query", Name: "run_query", Description: "Run a query against the database.",
			Schema: []byte(`{"properties":{"dialect":{"enum":["postgres","sqlite"]},"limit":{"description":"how many rows at most"}}}`)},
		{ID: "mcp.db.wetter", Name: "wetter", Description: "查询城市天气"},
	})
	return x
}

func TestWhatIsFoundFirst(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ what, text, want string }{
		{"a server is named", "post a message on slack", "mcp.slack.post_message"},
		{"another server is named", "post a message on teams", "mcp.teams.postMessage"},
		{"inflected", "posting messages in teams", "mcp.teams.postMessage"},
		{"chatter", "hi, could you please help me and post a message for us all on Slack? thanks", "mcp.slack.post_message"},
		{"an abbreviation", "open a PR", "mcp.code.create_pull_request"},
		{"another word", "wipe the repo", "mcp.code.delete_repository"},
		{"what is to be done", "show the repository", "mcp.code.get_repository"},
		{"misspelt", "add a raection", "mcp.slack.add_reaction"},
		{"a compound taken apart", "run a query on the data base", "mcp.db.run_query"},
		{"an enum's value", "postgres", "mcp.db.run_query"},
		{"a parameter's description", "limit of rows", "mcp.db.run_query"},
		{"pairs of Chinese", "天气", "mcp.db.wetter"},
		{"Chinese from English", "weather", "mcp.db.wetter"},
		{"a name in other separators", "POST-message teams", "mcp.teams.postMessage"},
		{"a name in a sentence", "then use mcp.code.delete_repository, and post on slack that the messages and channels are gone",
			"mcp.code.delete_repository"},
	} {
		got := find(office(search.Options{}), row.text)
		if len(got) == 0 || got[0] != row.want {
			t.Errorf("%s: %q finds %q, want %s first", row.what, row.text, got, row.want)
		}
	}
}

// TestScriptsWithoutSpaces: parts of what is written in one are found, and nothing else is.
func TestScriptsWithoutSpaces(t *testing.T) {
	t.Parallel()
	x := search.New(search.Options{})
	x.Put(search.Server{Name: "s"}, []search.Document{
		{ID: "data", Name: "t1", Description: "サーバーのデータを取得する"},
		{ID: "mail", Name: "t2", Description: "ユーザーにメールを送信する"},
		{ID: "narrow", Name: "t3", Description: "ｶﾞｿﾘﾝのｶｰﾄﾞ"},
		{ID: "thai", Name: "t4", Description: "ค้นหาเอกสารและไฟล์"},
		{ID: "khmer", Name: "t5", Description: "ស្វែងរកឯកសារ"},
		{ID: "korean", Name: "t6", Description: "날씨를 조회합니다"},
	})
	for text, want := range map[string]string{
		"データ": "data", "サーバー": "data", "メール": "mail", "ユーザー": "mail", "ｶｰﾄﾞ": "narrow", "ไฟล์": "thai", "เอกสาร": "thai",
		"ឯកសារ": "khmer", "날씨": "korean",
	} {
		if got := find(x, text); len(got) == 0 || got[0] != want || want != "data" && want != "mail" && len(got) > 1 || text == "データ" && len(got) > 1 {
			t.Errorf("%s finds %q, want %s", text, got, want)
		}
	}
}

// TestStuffing: who fills a description with what people ask for does not get before the tool that is named so.
func TestStuffing(t *testing.T) {
	t.Parallel()
	x := office(search.Options{})
	all := "create pull request post message slack channel delete repository list channels add reaction run query database "
	x.Put(search.Server{Name: "greedy", Description: strings.Repeat(all, 30)}, []search.Document{
		{ID: "mcp.greedy.everything", Name: "everything", Title: "The best tool for all", Description: strings.Repeat(all, 60),
			Hint: strings.Repeat(all, 20)},
		{ID: "mcp.greedy.long", Name: strings.ReplaceAll(strings.Repeat(all, 4), " ", "_"), Description: all},
	})
	for text, want := range map[string]string{
		"create a pull request":          "mcp.code.create_pull_request",
		"create_pull_request":            "mcp.code.create_pull_request",
		"post a message on slack":        "mcp.slack.post_message",
		"delete the repository":          "mcp.code.delete_repository",
		"add a reaction":                 "mcp.slack.add_reaction",
		"run a query":                    "mcp.db.run_query",
		"list the channels of slack":     "mcp.slack.list_channels",
		"please list channels in slack!": "mcp.slack.list_channels",
	} {
		if got := find(x, text); len(got) == 0 || got[0] != want {
			t.Errorf("%q finds %q, want %s first", text, got, want)
		}
	}
}

func TestScopeAndServersBoundWhatIsFound(t *testing.T) {
	t.Parallel()
	x := office(search.Options{})
	shown := func(id string) bool { return !strings.HasPrefix(id, "mcp.slack.") }
	scope := search.NewScope(shown)
	for _, a := range []search.Answer{
		x.Search(context.Background(), search.Query{Text: "mcp.slack.post_message slack channels reaction", Scope: scope, Limit: 100}),
		x.Regexp(context.Background(), pattern("."), search.Query{Scope: scope, Limit: 100}),
	} {
		if len(a.Hits) == 0 {
			t.Error("nothing is found at all")
		}
		for _, id := range ids(a) {
			if !shown(id) {
				t.Errorf("%s is hidden and found", id)
			}
		}
	}
	a := x.Search(context.Background(), search.Query{Text: "post message", Servers: []string{"teams", "nowhere"}})
	if got := ids(a); !slices.Equal(got, []string{"mcp.teams.postMessage"}) {
		t.Errorf("of teams alone: %q", got)
	}
	a = x.Search(context.Background(), search.Query{Text: "reaction", Limit: 1})
	if got := a.Hits[0].Fields; !slices.Contains(got, "name") || got[0] != "name" {
		t.Errorf("fields %q: the name matched", got)
	}
}

func pattern(expression string) *search.Pattern {
	p, err := search.ReadPattern(expression)
	if err != nil {
		panic(err)
	}
	return p
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func TestNothingIsFound(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	x := office(search.Options{})
	for what, a := range map[string]search.Answer{
		"an empty index":  search.New(search.Options{}).Search(context.Background(), search.Query{Text: "post"}),
		"no text":         x.Search(context.Background(), search.Query{}),
		"no such thing":   x.Search(context.Background(), search.Query{Text: "zzyzx qqqq"}),
		"no such server":  x.Search(context.Background(), search.Query{Text: "post", Servers: []string{"nowhere"}}),
		"nothing allowed": x.Search(context.Background(), search.Query{Text: "post", Scope: search.NewScope(func(string) bool { return false })}),
		"canceled":        x.Search(canceled, search.Query{Text: "post"}),
	} {
		if len(a.Hits) > 0 {
			t.Errorf("%s: %+v", what, a)
		}
	}
}

// TestWhatIsNotMeant: a brand in a sentence is no tool's name, a short word is no other word, numbers tell names apart, and
// a server that is named does not hide what others have.
func TestWhatIsNotMeant(t *testing.T) {
	t.Parallel()
	x := office(search.Options{})
	x.Put(search.Server{Name: "graph"}, []search.Document{
		{ID: "mcp.graph.GitHub", Name: "GitHub", Description: "Ingests a repository."},
		{ID: "mcp.graph.email", Name: "email", Description: "Ingests a mailbox."},
		{ID: "mcp.graph.run_tests", Name: "run_tests", Description: "Run the tests."},
		{ID: "mcp.graph.form_8", Name: "form_8", Description: "Fill in the form."},
		{ID: "mcp.graph.form_9", Name: "form_9", Description: "Fill in the form for Office 365."},
	})
	crowd := []search.Document{{ID: "mcp.acme.new_bill", Name: "new_bill", Description: "Create an invoice."}}
	for i := range 12 {
		id := fmt.Sprint("acme_", 'a'+rune(i))
		crowd = append(crowd, search.Document{ID: "mcp.acme." + id, Name: id, Description: "Of Acme."})
	}
	x.Put(search.Server{Name: "acme", Description: "Acme does all."}, crowd)
	x.Put(search.Server{Name: "books"}, []search.Document{{ID: "mcp.books.make_invoice", Name: "make_invoice", Description: "Make an invoice."}})
	for text, want := range map[string]string{
		"delete the repository on GitHub": "mcp.code.delete_repository",
		"GitHub":                          "mcp.graph.GitHub",
		"post an e-mail to the channel":   "mcp.teams.postMessage",
		"use mcp.graph.email for that":    "mcp.graph.email",
		"please fill in form 9":           "mcp.graph.form_9",
		"form 9":                          "mcp.graph.form_9",
		"Office 365":                      "mcp.graph.form_9",
		"create an invoice with acme":     "mcp.acme.new_bill",
		"tets":                            "mcp.graph.run_tests",
	} {
		if got := find(x, text); len(got) == 0 || got[0] != want {
			t.Errorf("%q finds %q, want %s first", text, got, want)
		}
	}
	if got := find(x, "is there room for my tent somewhere near Lisbon"); slices.Contains(got, "mcp.graph.run_tests") {
		t.Errorf("a tent is a test: %q", got)
	}
	a := x.Search(context.Background(), search.Query{Text: "create an invoice with acme", Limit: 3})
	if !slices.Contains(ids(a), "mcp.books.make_invoice") {
		t.Errorf("acme hides another server: %+v", a.Hits)
	}
}

// TestNothingFits: what no tool is for is said, whichever tools share a word with it, and what there is a tool for is not.
func TestNothingFits(t *testing.T) {
	t.Parallel()
	x := office(search.Options{})
	for text, weak := range map[string]bool{
		"write a poem about autumn leaves and send flowers":                     true,
		"which channels do Spanish ships pass between Suez, Panama and Corinth": true, "repository": false, "message": false, "post_message": false,
		"post a message to Maria about the rollout": false, "delete the repository Frobnicator": false, "a": false,
	} {
		if a := x.Search(context.Background(), search.Query{Text: text}); a.Weak != weak {
			t.Errorf("%q: weak %v, %+v", text, a.Weak, a.Hits)
		}
	}
}

// TestOrderOfPutsIsNothing: the same tools are found in the same order with the same scores, however they came.
func TestOrderOfPutsIsNothing(t *testing.T) {
	t.Parallel()
	servers, docs := invent(220)
	x, y := search.New(search.Options{}), search.New(search.Options{})
	for i := range servers {
		x.Put(servers[i], docs[i])
		y.Put(servers[len(servers)-1-i], docs[len(servers)-1-i])
	}
	for i := range servers { // and again, into slots that are free by then
		y.Remove(servers[i].Name)
		y.Put(servers[i], docs[i])
	}
	for _, text := range questions(docs)[:40] {
		a := x.Search(context.Background(), search.Query{Text: text, Limit: 20})
		b := y.Search(context.Background(), search.Query{Text: text, Limit: 20})
		if fmt.Sprint(a) != fmt.Sprint(b) {
			t.Fatalf("%q:\n%v\n%v", text, a, b)
		}
	}
}

func TestConcurrentPutsAndSearches(t *testing.T) {
	t.Parallel()
	servers, docs := invent(220)
	x := fill(search.New(search.Options{}), servers, docs)
	asked := questions(docs)
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := range 20 {
				switch w {
				case 0:
					x.Put(servers[i%10], docs[i%10])
				case 1:
					x.Remove(servers[i%5].Name)
				default:
					text := asked[(i+w)%len(asked)]
					a := x.Search(context.Background(), search.Query{Text: text})
					seen := make(map[string]bool)
					for _, id := range ids(a) {
						if seen[id] {
							t.Errorf("%s comes twice for %q", id, text)
						}
						seen[id] = true
					}
					x.Names(docs[0][0].Name, nil)
					x.Nearest(docs[0][0].Name, 3, nil)
				}
			}
		})
	}
	all.Wait()
}

// TestHostileQuestionsEnd asks questions that would take a careless search very long. The benchmark measures them.
func TestHostileQuestionsEnd(t *testing.T) {
	t.Parallel()
	servers, docs := invent(2200)
	x := fill(search.New(search.Options{}), servers, docs)
	texts, patterns := hostile(docs)
	for _, text := range texts {
		x.Search(context.Background(), search.Query{Text: text, Limit: 1 << 30})
	}
	for _, expression := range patterns {
		if p, err := search.ReadPattern(expression); err == nil {
			x.Regexp(context.Background(), p, search.Query{})
		}
	}
	if _, err := search.ReadPattern(patterns[0]); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a pattern of a thousand words: %v", err)
	}
	for _, name := range texts {
		x.Nearest(name, 3, nil)
	}
	x.Nearest(docs[5][3].Name+"x", 3, nil)
}

func TestRegexp(t *testing.T) {
	t.Parallel()
	x := office(search.Options{})
	for expression, want := range map[string][]string{
		`^post_?[mM]essage$`:      {"mcp.slack.post_message", "mcp.teams.postMessage"},
		`(?i)MICROSOFT|emoji`:     {"mcp.slack.add_reaction"},
		`(get|delete)_repo`:       {"mcp.code.delete_repository", "mcp.code.get_repository"},
		`天气`:                      {"mcp.db.wetter"},
		`(?:pull){1,2} re.*\.$`:   {"mcp.code.create_pull_request"},
		`channels?$|nothing at a`: {"mcp.slack.list_channels"},
		`never`:                   nil,
		`^mcp\.teams\.`:           {"mcp.teams.postMessage"},
		`code.*delete`:            {"mcp.code.delete_repository"},
		`(?i)^shown as .*tM.*e$`:  {"mcp.teams.postMessage"},
	} {
		a := x.Regexp(context.Background(), pattern(expression), search.Query{Limit: 10, Shown: func(id string) string { return "Shown as " + id }})
		if got := ids(a); !sameSet(got, want) {
			t.Errorf("%s finds %q, want %q (%q)", expression, got, want, a.Notes)
		}
	}
}

// FuzzSearch: whatever servers and askers write, nothing breaks, hits are ordered and what was put can be taken out.
func FuzzSearch(f *testing.F) {
	f.Add("post_message", "Post a message.", `{"properties":{"a":{"enum":["x",1]}}}`, "post slack")
	f.Add("发送消息", "HTTPServer URLs\xff", `{"properties":{"a":{"properties":{"a":[]}}},"anyOf":[{}]}`, "https://a.b/c 发送 a@b.c /x/y.z")
	f.Add("", "", "", "")
	f.Add("ß_İ", "İİİİ", "[", strings.Repeat("aB ", 100))
	x := office(search.Options{}) // one for all: to make it takes far longer than what is tried
	length, before := x.Len(), x.Search(context.Background(), search.Query{Text: "post a message"})
	f.Fuzz(func(t *testing.T, name, description, schema, text string) {
		name = "new " + name
		x.Put(search.Server{Name: name, Title: description, Description: text}, []search.Document{
			{ID: "1" + name, Name: name, Title: text, Description: description, Hint: text, Schema: []byte(schema)},
			{ID: "2" + name, Name: text, Description: schema},
		})
		a := x.Search(context.Background(), search.Query{Text: text, Limit: 10})
		for i, h := range a.Hits {
			if h.Score <= 0 || len(h.Fields) == 0 || i > 0 && h.Score > a.Hits[i-1].Score {
				t.Errorf("hit %d: %+v", i, a.Hits)
			}
		}
		x.Nearest(text, 3, nil)
		if p, err := search.ReadPattern(text); err == nil {
			x.Regexp(context.Background(), p, search.Query{})
		}
		x.Remove(name)
		if got := x.Names("1"+name, nil); slices.Contains(got, "1"+name) {
			t.Errorf("%q is removed and named", got)
		}
		if now := x.Search(context.Background(), search.Query{Text: "post a message"}); x.Len() != length || !reflect.DeepEqual(now, before) {
			t.Errorf("what was removed shows: %d tools, %+v, before %+v", x.Len(), now, before)
		}
	})
}
