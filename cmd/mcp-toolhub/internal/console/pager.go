package console

import (
	"maps"
	"net/url"
	"strconv"
)

// pager leads to the other parts of a long list. Its addresses keep what the list is filtered by.
type pager struct {
	Total, First, Last int    // counted from 1
	Older, Newer       string // addresses; "" for none

	here int // entries on this page
}

// part returns where the page of a list of so many entries begins, and the way to the others.
func (v *visit) part(total, size int) (at int, p pager) {
	q := v.r.URL.Query()
	n, err := strconv.Atoi(q.Get("page"))
	last := max(0, (total-1)/size)
	if err != nil || n < 0 {
		n = 0
	}
	n = min(n, last)
	at = n * size
	p = pager{Total: total, here: min(size, total-at)}
	p.First, p.Last = min(at+1, total), at+p.here
	if n > 0 {
		p.Newer = with(q, "page", strconv.Itoa(n-1))
	}
	if n < last {
		p.Older = with(q, "page", strconv.Itoa(n+1))
	}
	return at, p
}

// with is the query with another value.
func with(q url.Values, name, value string) string {
	next := maps.Clone(q)
	next.Set(name, value)
	return "?" + next.Encode()
}
