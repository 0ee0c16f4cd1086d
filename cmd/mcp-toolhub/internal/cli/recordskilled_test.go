//go:build e2e

package cli

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store/storetest"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// killsVariable names the environment variable with how many times TestRecordsOfKilledHubs kills each hub.
const killsVariable = "TOOLHUB_KILLS"

// Hubs are killed under load again and again, while their store is filled and journal files that it has are removed. Every result that a client
// received has its terminal record, its events and its stored bytes afterwards. No call is there twice, every one has an end, and the
// chains of evidence hold.
func TestRecordsOfKilledHubs(t *testing.T) {
	t.Parallel()
	kills := 1
	if text := os.Getenv(killsVariable); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	with := func(t *testing.T, store string) *storing {
		r := newStoring(t, nil, "off")
		writeFile(t, r.config, configText(t, map[string]any{"s": child(upstreamtest.Script{}), "stuck": child(upstreamtest.Script{})}, map[string]any{
			"persist": map[string]any{"journal": map[string]any{"max_bytes": 32 << 10}, "store": store}, "tuning": tuning{JournalFiles: 2},
			"results": map[string]any{"max_inline_tokens": 1000}}))
		return r
	}
	for name, hubs := range map[string]func(*testing.T) []*storing{
		"SQLite":               func(t *testing.T) []*storing { return []*storing{with(t, "sqlite")} },
		"two hubs, SQLite":     func(t *testing.T) []*storing { r := with(t, "sqlite"); return []*storing{r, r} },
		"PostgreSQL":           func(t *testing.T) []*storing { return []*storing{with(t, storetest.Database(t))} },
		"two hubs, PostgreSQL": func(t *testing.T) []*storing { r := with(t, storetest.Database(t)); return []*storing{r, r} },
		"two hubs that share only PostgreSQL": func(t *testing.T) []*storing {
			url := storetest.Database(t)
			return []*storing{with(t, url), with(t, url)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &killing{t: t, hubs: hubs(t), answered: map[tool.InvocationID]receipt{}}
			for range kills {
				k.round()
			}
			k.check(kills)
		})
	}
}

// killing is hubs that are killed, and what they have answered before.
type killing struct {
	t        *testing.T
	hubs     []*storing
	answered map[tool.InvocationID]receipt
	first    []string // the first journal file of each hub
}

// receipt is what a client received: from which hub, and where it was stored, or nil.
type receipt struct {
	hub    int
	stored *stored
}

// round starts the hubs, lets clients call them, and kills them in the midst of that. At least one call of each hub has no end by then.
func (k *killing) round() {
	type answer struct {
		hub  int
		text string
	}
	answers, ids := make(chan answer), &benchIDs{}
	var calling sync.WaitGroup
	var running []*runningHub
	enough, since := 100+rand.IntN(200), make([]int, len(k.hubs))
	for i, r := range k.hubs {
		h := r.launch()
		if len(k.first) < len(k.hubs) {
			k.first = append(k.first, r.journal()[0])
		}
		running = append(running, h)
		for caller := range 4 {
			c, err := dialHTTP(ids, h.url+"/mcp")
			if err == nil {
				err = handshake(c)
			}
			if err != nil {
				k.t.Fatal(err)
			}
			calling.Go(func() {
				defer c.close()
				for n := caller; ; n++ {
					text := fmt.Sprintf(`{"text":%q}`, strings.Repeat("word ", 1+n%10/9*1000)) // the result of one in ten is stored
					got, err := c.request("tools/call", benchCall("mcp.s.echo", text))
					if err != nil {
						return // killed
					}
					answers <- answer{i, string(got)}
				}
			})
		}
	}
	go func() {
		calling.Wait()
		close(answers)
	}()
	for a := range answers {
		if !strings.Contains(a.text, `"succeeded"`) || strings.Contains(a.text, "journal_failed") {
			continue // refused, because the store is behind
		}
		got := receipt{hub: a.hub}
		if strings.Contains(a.text, "toolhub://results/") {
			got.stored = new(storedIn(k.t, a.text))
		}
		k.answered[tool.InvocationID(invocationID.FindString(a.text))] = got
		if enough--; enough == 0 {
			for i, h := range running {
				eventually(k.t, "a call is under way", func() bool {
					k.hubs[i].call(h, "mcp.stuck.hang") // again where it was refused, because the store is behind
					return h.server(k.t, "stuck").InFlight > 0
				})
			}
		} else if enough < 0 {
			since[a.hub]++
		}
		if slices.Min(since) == 6 { // at least one of these began after that call, so the line of that is in the journal
			for _, h := range running {
				_ = h.cmd.Process.Kill()
			}
		}
	}
	for _, h := range running {
		<-h.read
		_ = h.cmd.Wait()
	}
}

// check looks at what hubs find that start after all that.
func (k *killing) check(kills int) {
	var clients []*wire
	for _, r := range k.hubs {
		h := r.launch()
		clients = append(clients, wireHTTP(k.t, h.url+"/mcp", rev2025).open())
	}
	removed := 0
	for i, r := range k.hubs {
		if !slices.Contains(r.journal(), k.first[i]) {
			removed++
		}
		eventually(k.t, "every call has an end", func() bool {
			return !slices.ContainsFunc(r.listed(), func(c store.Call) bool { return c.Ended == nil })
		})
		// The store has all lines, so the two files that are left may be the new ones, which have none.
		empty := !slices.ContainsFunc(r.journal(), func(path string) bool {
			info, err := os.Stat(path)
			return err == nil && info.Size() > 0
		})
		if report := r.evidence(); len(report.Findings) > 0 || report.Records == 0 && !empty {
			k.t.Errorf("the chains of evidence: %+v", report)
		}
	}
	hung, calls := 0, k.exported()
	for id, objects := range calls {
		hung += objects["mcp.stuck.hang"] * objects["tool.invocation.started"] // others were refused
		if objects["tool_result"] != 1 {
			k.t.Errorf("%s has the objects %v", id, objects)
		}
	}
	if want := kills * len(k.hubs); hung < want {
		k.t.Errorf("%d calls were under way when their hubs were killed, not %d or more", hung, want)
	}
	read := 0
	for id, got := range k.answered {
		wanted := []string{"tool_result", "tool.invocation.started", "tool.invocation.succeeded", "tool.result.created"}
		if got.stored != nil {
			wanted = append(wanted, "tool_result_persistence", "tool.result.persisted")
		}
		for _, what := range wanted {
			if calls[id][what] != 1 {
				k.t.Errorf("%s was answered, and has the objects %v", id, calls[id])
			}
		}
		if got.stored != nil {
			read++
			w := clients[got.hub]
			if text := resourceText(k.t, last(w.send(w.readStored(got.stored.uri)))); tool.Digest([]byte(text)) != got.stored.sum {
				k.t.Errorf("%s: %d bytes are stored, and other ones were", id, len(text))
			}
		}
	}
	k.t.Logf("%d calls, %d of them answered, %d stored results read; of %d journals %d have lost old files", len(calls), len(k.answered), read, len(k.hubs), removed)
}

// exported returns what the store has of each call: how many objects of each kind, event type and tool.
func (k *killing) exported() map[tool.InvocationID]map[string]int {
	calls, ids := map[tool.InvocationID]map[string]int{}, map[string]bool{}
	for line := range strings.Lines(k.hubs[0].calls("export", "--format", "jsonl", "--output", "-")) {
		var c struct {
			store.Call
			Objects []anyRecord `json:"objects"`
		}
		mustDecode(k.t, line, &c)
		if calls[c.ID] != nil {
			k.t.Errorf("%s is there twice", c.ID)
		}
		calls[c.ID] = map[string]int{c.Tool: 1}
		for _, o := range c.Objects {
			calls[c.ID][string(o.Object)]++
			calls[c.ID][string(o.Event)]++
			if o.EventID != "" && ids[o.EventID] {
				k.t.Errorf("the event %s is there twice", o.EventID)
			}
			ids[o.EventID] = true
		}
	}
	return calls
}
