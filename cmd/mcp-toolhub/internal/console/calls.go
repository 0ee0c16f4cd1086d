package console

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"

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
	choices := map[string][]string{"client": v.today().Clients, "server": serverIDs(v.Hub),
		"status": {"succeeded", "failed", "denied", "canceled", "timed_out", "running", "awaiting_approval"},
		"since":  {"1h", "today", "yesterday", "7d", "30d"}}
	q.Del("before")
	return &page{Name: "calls", Title: "Calls", Live: query.Before == nil, // older calls stay as they are
		Data: map[string]any{"List": list, "Older": older, "Newest": "?" + q.Encode(),
			"IsOlder": query.Before != nil, "Text": query.Text, "Filters": filters(q, choices,
				"client", "server", "status", "since", "tool", "actor", "profile", "class")}}, nil
}

// runningFirst puts calls first that run or wait for a person, also older ones, if the list begins
// with the newest call. To look for them among the calls of a tool, or of a text, takes too long.
func (v *visit) runningFirst(list []Call, q CallQuery) ([]Call, error) {
	if q.Before != nil || q.Text != "" || q.Is[store.Status] != "" || q.Is[store.Tool] != "" {
		return list, nil
	}
	active := []tool.Status{tool.StatusAwaitingApproval, tool.StatusRunning}
	list = slices.DeleteFunc(list, func(c Call) bool { return slices.Contains(active, c.Status) })
	for _, status := range active {
		of := q
		of.Is = maps.Clone(q.Is)
		of.Is[store.Status] = string(status)
		found, err := v.Hub.Calls(v.r.Context(), of)
		if err != nil {
			return nil, err
		}
		list = append(found, list...)
	}
	return list, nil
}

// filter is a choice by which a list is filtered.
type filter struct {
	Name, Value string
	Choices     []string
}

// filters are those of the names that have choices, or a value: what a link filters by can be seen.
func filters(q url.Values, choices map[string][]string, names ...string) (all []filter) {
	for _, name := range names {
		f := filter{name, q.Get(name), choices[name]}
		if f.Value != "" && !slices.Contains(f.Choices, f.Value) {
			f.Choices = append(slices.Clip(f.Choices), f.Value)
		}
		if len(f.Choices) > 0 {
			all = append(all, f)
		}
	}
	return all
}

// serverIDs are the ids of the servers, in their order.
func serverIDs(hub Hub) (ids []string) {
	for _, st := range hub.Servers() {
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
