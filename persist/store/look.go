package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/glob"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// callColumns are what scanCall reads.
const callColumns = "i.seq, i.id, i.created, i.ended, i.tool, i.server, i.actor, i.client, i.profile, " +
	"i.status, i.class, " +
	"i.approved_by, i.address, i.hub"

// selection is a SELECT that is being written.
type selection struct {
	from  string
	where []string
	args  []any
}

// arg adds a value and returns its place in the SQL.
func (s *selection) arg(v any) string {
	s.args = append(s.args, v)
	return fmt.Sprintf("$%d", len(s.args))
}

func (s *selection) sql(columns, rest string) string {
	text := "SELECT " + columns + " FROM " + s.from
	if len(s.where) > 0 {
		text += " WHERE " + strings.Join(s.where, " AND ")
	}
	return text + rest
}

// selectCalls selects the calls of the query, as i. from is where they come from; "" for all.
func (s *database) selectCalls(q Query, from string) *selection {
	sel := &selection{from: cmp.Or(from, "invocations i")}
	if q.Text != "" {
		found := fmt.Sprintf(s.found, sel.arg(s.words(q.Text)))
		if from == "" {
			sel.from = found
		} else {
			sel.where = append(sel.where, "i.seq IN (SELECT i.seq FROM "+found+")")
		}
	}
	sel.filter(q)
	return sel
}

// filter leaves out what the query does not mean, but for its text.
func (s *selection) filter(q Query) {
	if !q.Since.IsZero() {
		s.where = append(s.where, "i.created >= "+s.arg(q.Since.UnixMicro()))
	}
	if !q.Until.IsZero() {
		s.where = append(s.where, "i.created < "+s.arg(q.Until.UnixMicro()))
	}
	for _, c := range Columns() {
		v, ok := q.Is[c]
		all, pattern := q.matching[c]
		switch {
		case pattern && len(all) == 0:
			s.where = append(s.where, "1 = 0")
		case pattern:
			places := make([]string, len(all))
			for i, v := range all {
				places[i] = s.arg(v)
			}
			s.where = append(s.where, "i."+string(c)+" IN ("+strings.Join(places, ", ")+")")
		case ok:
			s.where = append(s.where, "i."+string(c)+" = "+s.arg(v))
		}
	}
}

// before leaves out what comes in a list up to q.Before.
func (s *selection) before(q Query) {
	if b := q.Before; b != nil {
		s.where = append(s.where, fmt.Sprintf("(i.created, i.seq) < (%s, %s)", s.arg(b.Created.UnixMicro()),
			s.arg(b.seq)))
	}
}

// values finds all values of a column with one step in its index for each.
const values = `WITH RECURSIVE v(x) AS (SELECT MIN(%[1]s) FROM invocations
	UNION ALL SELECT (SELECT MIN(%[1]s) FROM invocations WHERE %[1]s > v.x) FROM v WHERE v.x IS NOT NULL)
		SELECT x FROM v WHERE x IS NOT NULL`

// expand finds what the patterns of the query match. One that matches all values is dropped. The words of all calls are
// indexed where the query has a text.
func (s *database) expand(ctx context.Context, q Query) (Query, error) {
	for more := q.Text != ""; more; {
		var err error
		if more, err = s.Index(ctx, 0); err != nil {
			return q, err
		}
	}
	q.Is, q.matching = maps.Clone(q.Is), make(map[Column][]string)
	for c, pattern := range q.Is {
		if !glob.HasWildcard(pattern) {
			continue
		}
		n, found := 0, []string{}
		err := s.each(ctx, &selection{from: "(" + fmt.Sprintf(values, c) + ") AS all_of_it"}, "x", "",
			func(rows *sql.Rows) error {
				var v string
				err := rows.Scan(&v)
				if n++; glob.Match(pattern, v) {
					found = append(found, v)
				}
				return err
			})
		if err != nil {
			return q, err
		}
		if delete(q.Is, c); len(found) < n || n == 0 {
			q.matching[c] = found
		}
	}
	return q, nil
}

func limited(q Query) string {
	if q.Limit <= 0 {
		return ""
	}
	return fmt.Sprintf(" LIMIT %d", q.Limit)
}

func (s *database) List(ctx context.Context, q Query) ([]Call, error) {
	q, err := s.expand(ctx, q)
	if err != nil {
		return nil, err
	}
	if q.Text != "" {
		return s.search(ctx, q)
	}
	for c, all := range q.matching {
		if n := len(all) * q.Limit; n > 0 && n <= maxMerged {
			return s.merged(ctx, q, c, all)
		}
	}
	return s.list(ctx, q)
}

// maxMerged is up to how many calls are read to find the newest ones that have one of some values.
// An index has those of each value in their order. For more, a walk back through all calls finds
// them soon.
const maxMerged = 3000

// merged is list for each value of a column that a pattern matches.
func (s *database) merged(ctx context.Context, q Query, c Column, values []string) (found []Call, err error) {
	delete(q.matching, c)
	for _, q.Is[c] = range values {
		calls, err := s.list(ctx, q)
		if err != nil {
			return nil, err
		}
		found = append(found, calls...)
		slices.SortFunc(found, func(a, b Call) int {
			return cmp.Or(b.Created.Compare(a.Created),
				cmp.Compare(b.seq, a.seq))
		})
		if len(found) >= q.Limit {
			found = found[:q.Limit]
			q.Since = found[q.Limit-1].Created // older ones are not among the newest
		}
	}
	return found, nil
}

// list is List for a query without a text.
func (s *database) list(ctx context.Context, q Query) ([]Call, error) {
	sel := s.selectCalls(q, "")
	sel.before(q)
	return s.calls(ctx, sel, " ORDER BY i.created DESC, i.seq DESC"+limited(q))
}

// search is List for a query with a text. It goes on to the next way where one does not find as
// many calls as are wanted.
func (s *database) search(ctx context.Context, q Query) (found []Call, err error) {
	few, err := s.few(ctx, q)
	if err != nil {
		return nil, err
	}
	ways, last := s.ways, int64(math.MaxInt64)
	switch {
	case few:
		ways = []way{s.among}
	case q.Limit <= 0:
		ways = ways[len(ways)-1:]
	}
	if q.Before != nil {
		last = q.Before.seq - 1
	} else if len(ways) > 1 {
		if err := s.db.QueryRowContext(ctx, "SELECT COALESCE(MAX(seq), 0) FROM words").Scan(&last); err != nil {
			return nil, s.cannotRead(err)
		}
	}
	for _, w := range ways {
		sel, after := &selection{}, int64(0)
		if w.span > 0 {
			after = max(0, last-w.span*int64(q.Limit))
		}
		sel.from = fmt.Sprintf(w.from, sel.arg(s.words(q.Text)), sel.arg(after), sel.arg(last))
		sel.filter(q)
		found, err = s.calls(ctx, sel, " ORDER BY "+w.order+limited(q))
		if err != nil || len(found) == q.Limit || after == 0 {
			break
		}
	}
	return found, err
}

// calls reads the calls of the selection.
func (s *database) calls(ctx context.Context, sel *selection, rest string) (all []Call, err error) {
	err = s.each(ctx, sel, callColumns, rest, func(rows *sql.Rows) error {
		c, err := scanCall(rows)
		all = append(all, c)
		return err
	})
	return all, err
}

// few reports whether few calls pass the filters of q: then it takes less to look for the words in
// these than the other way round.
func (s *database) few(ctx context.Context, q Query) (bool, error) {
	const most = 200 // to look for a common word in one of them takes up to 0.7 ms
	q.Text = ""
	sel := s.selectCalls(q, "")
	if len(sel.where) == 0 {
		return false, nil
	}
	n := 0
	err := s.db.QueryRowContext(ctx, fmt.Sprintf("SELECT COUNT(*) FROM (%s LIMIT %d) AS passing", sel.sql("1", ""),
		most), sel.args...).Scan(&n)
	return n < most, s.cannotRead(err)
}

func (s *database) Ended(ctx context.Context, after int64, q Query) ([]Call, int64, error) {
	q, err := s.expand(ctx, q)
	if err != nil {
		return nil, after, err
	}
	sel := s.selectCalls(q, "lines l JOIN invocations i ON i.seq = l.seq")
	sel.where = append(sel.where, "l.ends", "l.n > "+sel.arg(after))
	var all []Call
	err = s.each(ctx, sel, callColumns+", l.n", " ORDER BY l.n"+limited(q), func(rows *sql.Rows) error {
		c, err := scanCall(rows, &after)
		all = append(all, c)
		return err
	})
	return all, after, err
}

func (s *database) Position(ctx context.Context) (n int64, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT COALESCE(MAX(n), 0) FROM lines").Scan(&n)
	return n, s.cannotRead(err)
}

func (s *database) Stats(ctx context.Context, by Column, q Query) ([]Stat, error) {
	if !slices.Contains(Columns(), by) {
		return nil, fmt.Errorf("sum up calls by %q: there is no such column", by)
	}
	q, err := s.expand(ctx, q)
	if err != nil {
		return nil, err
	}
	type sums struct {
		Stat
		latencies []int64 // microseconds
		kept      int64   // characters
	}
	// A list is that of one caller. How much it defers tells its versions apart.
	type list struct {
		value, actor, client, profile string
		deferred                      int64
	}
	found, counted := make(map[string]*sums), make(map[list]bool)
	column := "i." + string(by)
	err = s.each(ctx, s.selectCalls(q, ""), column+", i.status, i.class, i.ended - i.created, i.kept, i.deferred, "+
		"i.actor, i.client, i.profile", "",
		func(rows *sql.Rows) error {
			var value, status, class string
			var latency sql.NullInt64
			var kept int64
			var l list
			if err := rows.Scan(&value, &status, &class, &latency, &kept, &l.deferred, &l.actor, &l.client,
				&l.profile); err != nil {
				return err
			}
			l.value = value
			one := found[value]
			if one == nil {
				one = &sums{Stat: Stat{Value: value}}
				found[value] = one
			}
			one.Calls++
			one.kept += kept
			if !counted[l] {
				counted[l] = true
				one.DeferredTokens += l.deferred
			}
			if latency.Valid {
				one.latencies = append(one.latencies, latency.Int64)
				if status != string(tool.StatusSucceeded) && status != string(tool.StatusYielded) &&
					class != string(tool.ClassSchemaNotLoaded) { // the caller has got the declaration and calls again
					one.Failed++
				}
			}
			return nil
		})
	if err != nil {
		return nil, err
	}
	all := make([]Stat, 0, len(found))
	for _, one := range found {
		slices.Sort(one.latencies)
		if n := len(one.latencies); n > 0 {
			one.P50MS, one.P95MS = milliseconds(one.latencies[(n-1)/2]), milliseconds(one.latencies[(n*95+99)/100-1])
			one.MaxMS = milliseconds(one.latencies[n-1])
		}
		one.KeptTokens = one.kept / charsPerToken
		all = append(all, one.Stat)
	}
	slices.SortFunc(all, func(a, b Stat) int { return cmp.Or(b.Calls-a.Calls, strings.Compare(a.Value, b.Value)) })
	return all, nil
}

// charsPerToken says how long a token is: nobody knows how a model cuts a result, so each token
// counts as four characters.
const charsPerToken = 4

func milliseconds(us int64) float64 { return float64(us) / 1000 }

func (s *database) Lines(ctx context.Context, id tool.InvocationID) ([]json.RawMessage, error) {
	sel := &selection{from: "lines l JOIN invocations i ON i.seq = l.seq"}
	sel.where = append(sel.where, "i.id = "+sel.arg(string(id)))
	all, err := s.texts(ctx, sel, "l.line", " ORDER BY l.n")
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	return all, err
}

func (s *database) Standing(ctx context.Context, keys ...string) ([]json.RawMessage, error) {
	var all []json.RawMessage
	for _, key := range keys {
		sel := &selection{from: "standing"}
		sel.where = append(sel.where, "id = "+sel.arg(key))
		lines, err := s.texts(ctx, sel, "line", "")
		if err != nil {
			return nil, err
		}
		all = append(all, lines...)
	}
	return all, nil
}

// texts returns the texts of one column.
func (s *database) texts(ctx context.Context, sel *selection, column, rest string) (all []json.RawMessage, err error) {
	err = s.each(ctx, sel, column, rest, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		all = append(all, json.RawMessage(text))
		return err
	})
	return all, err
}

// each calls take for each row of the selection.
func (s *database) each(ctx context.Context, sel *selection, columns, rest string, take func(*sql.Rows) error) error {
	rows, err := s.db.QueryContext(ctx, sel.sql(columns, rest), sel.args...)
	if err != nil {
		return s.cannotRead(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := take(rows); err != nil {
			return s.cannotRead(err)
		}
	}
	return s.cannotRead(rows.Err())
}

func (s *database) cannotRead(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("read the record store %q: %w%s", s.path, err, s.advice(err))
}

// Cursor is where a list goes on after the call, as text. ParseCursor makes a Query.Before of it.
func (c *Call) Cursor() string { return fmt.Sprintf("%d.%d", c.Created.UnixMicro(), c.seq) }

// ParseCursor reads the text of a Cursor.
func ParseCursor(text string) (*Call, error) {
	var created, seq int64
	if n, err := fmt.Sscanf(text, "%d.%d", &created, &seq); n != 2 || err != nil {
		return nil, fmt.Errorf("%.40q is no place in a list of calls: begin with the newest", text)
	}
	return &Call{Created: time.UnixMicro(created), seq: seq}, nil
}

// scanCall reads callColumns and what comes after them.
func scanCall(rows *sql.Rows, more ...any) (c Call, err error) {
	var created int64
	var ended sql.NullInt64
	into := []any{&c.seq, &c.ID, &created, &ended, &c.Tool, &c.Server, &c.Actor, &c.Client, &c.Profile, &c.Status,
		&c.Class,
		&c.ApprovedBy, &c.Address, &c.Hub}
	if err := rows.Scan(append(into, more...)...); err != nil {
		return c, err
	}
	c.Created = time.UnixMicro(created).UTC()
	if ended.Valid {
		c.Ended = new(time.UnixMicro(ended.Int64).UTC())
		c.LatencyMS = new(milliseconds(ended.Int64 - created))
	}
	return c, nil
}
