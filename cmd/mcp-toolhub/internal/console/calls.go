package console

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
)

// calls shows recorded calls, those that run among them.
func (v *visit) calls() (*page, error) {
	q := v.r.URL.Query()
	query := CallQuery{Since: q.Get("since"), Until: q.Get("until"), Text: q.Get("text"),
		Is:    make(map[store.Column]string),
		Limit: callsPerPage + 1}
	for _, c := range store.Columns() {
		if value := q.Get(string(c)); value != "" {
			query.Is[c] = value
		}
	}
	if at := q.Get("before"); at != "" {
		before, err := store.ParseCursor(at)
		if err != nil {
			return nil, &fault{http.StatusBadRequest, sentence(err.Error())}
		}
		query.Before = before
	}
	list, err := v.Hub.Calls(v.r.Context(), query)
	if err != nil {
		return nil, wrong(err)
	}
	older := ""
	if len(list) > callsPerPage {
		list = list[:callsPerPage]
		older = with(q, "before", list[callsPerPage-1].Cursor())
	}
	if list, err = v.runningFirst(list, query); err != nil {
		return nil, wrong(err)
	}
	first := url.Values{}
	for k, all := range q {
		if k != "before" {
			first[k] = all
		}
	}
	return &page{Name: "calls", Title: "Calls", Live: query.Before == nil, // older calls stay as they are
		Data: map[string]any{"List": list, "Older": older, "Newest": "?" + first.Encode(),
			"IsOlder": query.Before != nil, "Filters": v.filters(q), "Text": query.Text}}, nil
}

// callsWithRunning are the newest calls that the query means, those first that run.
func (v *visit) callsWithRunning(q CallQuery) ([]Call, error) {
	list, err := v.Hub.Calls(v.r.Context(), q)
	if err != nil {
		return nil, err
	}
	list, err = v.runningFirst(list, q)
	return list[:min(len(list), q.Limit)], err
}

// runningFirst puts those first that run, also older ones, if the list is the newest part of all calls.
func (v *visit) runningFirst(list []Call, q CallQuery) ([]Call, error) {
	if q.Before != nil || q.Text != "" || q.Is[store.Status] != "" {
		return list, nil
	}
	if q.Is == nil {
		q.Is = make(map[store.Column]string)
	}
	q.Limit = callsPerPage
	running, err := v.Hub.Running(v.r.Context(), q)
	running = running[:min(len(running), callsPerPage)]
	for _, c := range list {
		if !slices.ContainsFunc(running, func(r Call) bool { return r.ID == c.ID }) {
			running = append(running, c)
		}
	}
	return running, err
}

// filter is a choice by which a list is filtered.
type filter struct {
	Name, Label, Value string
	Choices            []string
}

// newFilter is a filter of the choices, and of what the query has.
func newFilter(name, label string, q url.Values, choices ...string) filter {
	f := filter{name, label, q.Get(name), choices}
	if f.Value != "" && !slices.Contains(choices, f.Value) {
		f.Choices = append(f.Choices, f.Value)
	}
	return f
}

// filters are the choices of the list of calls. Those that only a link makes are there if it has.
func (v *visit) filters(q url.Values) []filter {
	today, err := v.Hub.Today(v.r.Context())
	if err != nil {
		v.Logger.Debug("the page offers no clients to choose from", "error", err)
	}
	all := []filter{newFilter("client", "Client", q, today.Clients...),
		newFilter("server", "Server", q, v.serverIDs()...),
		newFilter("status", "Status", q, string(tool.StatusSucceeded), string(tool.StatusFailed),
			string(tool.StatusDenied), string(tool.StatusCanceled), string(tool.StatusTimedOut),
			string(tool.StatusRunning), string(tool.StatusAwaitingApproval)),
		newFilter("since", "Since", q, "1h", "today", "yesterday", "last week", "last month")}
	for _, c := range []store.Column{store.Tool, store.Actor, store.Profile, store.Class} {
		if q.Get(string(c)) != "" {
			all = append(all, newFilter(string(c), strings.ToUpper(string(c[:1]))+string(c[1:]), q))
		}
	}
	return all
}

// serverIDs are the ids of the servers, in their order.
func (v *visit) serverIDs() (ids []string) {
	for _, st := range v.Hub.Servers() {
		ids = append(ids, st.Server)
	}
	return ids
}

// call shows the story of one call.
func (v *visit) call() (*page, error) {
	told, err := v.Hub.Story(v.r.Context(), tool.InvocationID(v.r.PathValue("id")))
	if errors.Is(err, ErrUnknown) {
		return nil, &fault{http.StatusNotFound,
			"The records have no such call. One that has just been made is there in a moment."}
	}
	if err != nil {
		return nil, err
	}
	steps := told.Steps
	const most = 200
	return &page{Name: "call", Title: "Call of " + told.Tool, Live: len(told.Result) == 0, // it runs
		Data: map[string]any{"Story": told, "Steps": steps[:min(len(steps), most)],
			"MoreSteps": max(0, len(steps)-most)}}, nil
}
