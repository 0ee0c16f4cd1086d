package console

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
)

// calls shows recorded calls, those that run among them.
func (v *visit) calls() (*page, error) {
	q := v.r.URL.Query()
	type filter struct {
		Column store.Column
		Value  string
	}
	query := CallQuery{Since: q.Get("since"), Until: q.Get("until"), Text: q.Get("text"),
		Is:    make(map[store.Column]string),
		Limit: callsPerPage + 1}
	var filters []filter
	for _, c := range store.Columns() {
		value := q.Get(string(c))
		filters = append(filters, filter{c, value})
		if value != "" {
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
	first := url.Values{}
	for k, all := range q {
		if k != "before" {
			first[k] = all
		}
	}
	return &page{Name: "calls", Title: "Calls", Live: query.Before == nil, // older calls stay as they are
		Data: map[string]any{"List": list, "Older": older, "Newest": "?" + first.Encode(),
			"IsOlder": query.Before != nil, "Filters": filters, "Query": query}}, nil
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
