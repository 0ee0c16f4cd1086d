//go:build e2e

package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// soakVariable names the environment variable with how long TestSoak takes, as a Go duration. Its default is 15 seconds.
const soakVariable = "TOOLHUB_SOAK"

const (
	soakClients = 64 // half of them of each generation
	soakPause   = 100 * time.Millisecond
	soakStay    = 100 // calls until a client goes, and another one comes
	slackMemory = 16  // MB of its own that are resident: the collector lets the heap of a busy hub double

	slackBuffers = 768 << 10 // bytes of heap: the journal's buffer, for one, keeps the size of what was once written together
)

// soakServers are the servers that are always there and always answer.
var soakServers = []string{"up", "new", "web"}

// soak is a hub under load, and what was seen of it.
type soak struct {
	t        *testing.T
	hub      *runningHub
	probe    *probe
	crashers []*crasher
	settings map[string]any
	entries  map[string]any

	calls, failures, crashed, reloads, visits atomic.Int64
}

// TestSoak: under 64 clients of both generations, with servers over stdio and HTTP that crash and recover and configs that
// change, the hub's memory, goroutines and descriptors do not grow, no child is left, and every call is answered once.
func TestSoak(t *testing.T) { // not parallel: it keeps the machine busy
	length, err := time.ParseDuration(cmp.Or(os.Getenv(soakVariable), "15s"))
	if err != nil {
		t.Fatal(err)
	}
	mark := newMark(t)
	s := &soak{t: t, crashers: crashers(t, mark), settings: map[string]any{
		"deferred": neverDeferred()["deferred"],
		"policy":   hundredRules(),
		"persist":  map[string]any{"journal": map[string]any{"max_bytes": "1MiB"}},
		"tuning":   tuning{JournalFiles: 3, RetryMin: 10 * time.Millisecond, RetryMax: 50 * time.Millisecond, RetryBudget: 1_000_000},
	}, entries: map[string]any{
		"up":  child(upstreamtest.Script{}, mark),
		"new": child(upstreamtest.Script{Modern: true}, mark),
		"web": map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{})},
	}}
	for _, c := range s.crashers {
		s.entries[c.id] = c.entry
	}
	p, variable := newProbe(t)
	s.hub = startHubIn(t, []string{variable}, "hub.json", configText(t, s.entries, s.settings))
	p.pid, s.probe = s.hub.cmd.Process.Pid, p
	s.run(max(length/10, 10*time.Second)) // the record store and the chains of evidence have been written, too
	before, processes := s.settled(), len(marked(mark))
	own, _ := memoryOf(p.pid, "RssAnon")
	s.calls.Store(0)
	s.crashed.Store(0)
	s.run(length)
	s.settled()
	grown, _ := memoryOf(p.pid, "RssAnon")
	before.Heap += slackBuffers + 64*uint64(s.crashed.Load()) // each start of a server is remembered for an hour
	checkLeaks(t, p, before)
	t.Logf("in %s: %d calls, of which %d were answered with a failure, by %d clients; %d crashes, %d reloads; %.1f MB of its own are resident, and %.1f before",
		length, s.calls.Load(), s.failures.Load(), s.visits.Load(), s.crashed.Load(), s.reloads.Load(), grown, own)
	if grown > own+slackMemory && !underRace { // the detector's own memory comes and goes
		t.Errorf("%.1f MB of its own are resident, and before it were %.1f", grown, own)
	}
	if now := len(marked(mark)); now > processes {
		t.Errorf("there are %d processes of the servers, and there were %d", now, processes)
	}
	if s.calls.Load() < soakClients || s.crashed.Load() == 0 || s.reloads.Load() == 0 {
		t.Error("that was no soak")
	}
}

// run keeps the hub busy for so long.
func (s *soak) run(length time.Duration) {
	stop := make(chan struct{})
	timer := time.AfterFunc(length, func() { close(stop) })
	defer timer.Stop()
	var busy sync.WaitGroup
	every := func(pause time.Duration, do func(k int) error) {
		busy.Go(func() {
			tick := time.NewTicker(pause)
			defer tick.Stop()
			for k := 0; ; k++ {
				if err := do(k); err != nil {
					s.t.Error(err)
					return
				}
				select {
				case <-tick.C:
				case <-stop:
					return
				}
			}
		})
	}
	for i := range soakClients {
		v := &soakVisitor{soak: s, modern: i%2 == 0}
		every(soakPause, v.call)
		defer v.leave()
	}
	for _, c := range s.crashers {
		every(time.Second, func(int) error {
			if err := c.round(s.hub); err != nil {
				return fmt.Errorf("server %s: %w", c.id, err)
			}
			s.crashed.Add(1)
			return nil
		})
	}
	every(2*time.Second, s.reload)
	every(max(length/20, time.Second), func(int) error {
		mb, _ := memoryOf(s.probe.pid, "VmRSS")
		s.t.Logf("%.1f MB resident after %d calls", mb, s.calls.Load())
		return nil
	})
	busy.Wait()
}

// reload changes the config: a server comes or goes, and rules change.
func (s *soak) reload(k int) error {
	entries := maps.Clone(s.entries)
	policy := hundredRules()
	if k%2 == 0 {
		entries["guest"] = child(upstreamtest.Script{})
		policy["rules"] = policy["rules"].([]any)[50:]
	}
	s.reloads.Add(1)
	return s.write(entries, policy)
}

// write replaces the config.
func (s *soak) write(entries, policy map[string]any) error {
	settings := maps.Clone(s.settings)
	settings["policy"] = policy
	file := filepath.Join(s.hub.cmd.Dir, "hub.json")
	if err := os.WriteFile(file+".new", []byte(configText(s.t, entries, settings)), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// settled is what the hub holds once nothing is under way: no session, no call, and the config as at first. Servers over HTTP
// were removed meanwhile, and with them the connections that the hub keeps for the next calls: more after more calls at a time.
func (s *soak) settled() holdings {
	s.t.Helper()
	local := maps.Clone(s.entries)
	maps.DeleteFunc(local, func(_ string, entry any) bool { return entry.(map[string]any)["url"] != nil })
	for _, entries := range []map[string]any{local, s.entries} {
		if err := s.write(entries, hundredRules()); err != nil {
			s.t.Fatal(err)
		}
		s.rests(len(entries))
	}
	return s.probe.settled(s.t)
}

// rests waits until so many servers are ready, and nothing is under way.
func (s *soak) rests(servers int) {
	s.t.Helper()
	var text string
	defer func() {
		if s.t.Failed() {
			s.t.Logf("health: %s", text)
		}
	}()
	eventually(s.t, "nothing is under way", func() bool {
		var health downstream.Health
		health, text = s.hub.health(s.t)
		return health.Sessions == 0 && len(health.Servers) == servers &&
			!slices.ContainsFunc(health.Servers, func(st tool.ServerStatus) bool {
				return st.State != tool.ServerReady || st.InFlight+st.Queued > 0
			})
	})
	http.DefaultClient.CloseIdleConnections() // the test's own
}

// soakVisitor is one client after the other, each with a connection and a session of its own.
type soakVisitor struct {
	*soak
	modern bool
	client *httpClient
	ids    benchIDs
}

// call makes one call, of a server that always answers or of one that crashes.
func (v *soakVisitor) call(k int) error {
	if k%soakStay == 0 {
		v.leave()
		c, err := dialHTTP(&v.ids, v.hub.url+"/mcp")
		if err != nil {
			return err
		}
		if c.modern = v.modern; !v.modern {
			if err := handshake(c); err != nil {
				return err
			}
		}
		v.client = c
		v.visits.Add(1)
	}
	id, steady := soakServers[k%len(soakServers)], true
	if k%4 == 3 {
		id, steady = v.crashers[rand.IntN(len(v.crashers))].id, false
	}
	mine := fmt.Sprintf(`{"round":"%p %d"}`, v, k)
	answer, err := v.client.request("tools/call", benchCall("mcp."+id+".echo", mine)) // which fails unless exactly this one is answered
	if err != nil {
		return fmt.Errorf("call of %s: %w", id, err)
	}
	v.calls.Add(1)
	switch {
	case bytes.Contains(answer, []byte(`"arguments":`+mine)):
		return nil
	case !steady && bytes.Contains(answer, []byte(`"isError":true`)):
		v.failures.Add(1)
		return nil
	}
	return fmt.Errorf("a call of %s with %s was answered %.500s", id, mine, answer)
}

// leave ends the session and the connection.
func (v *soakVisitor) leave() {
	if v.client == nil {
		return
	}
	defer v.client.close()
	if v.modern {
		return
	}
	if _, err := fmt.Fprint(v.client.conn, "DELETE"+strings.TrimPrefix(v.client.head, "POST")+"\r\n"); err != nil {
		v.t.Error(err)
		return
	}
	if resp, err := http.ReadResponse(v.client.in, nil); err != nil || resp.StatusCode >= 300 {
		v.t.Errorf("the end of a session was answered %v, %v", resp, err)
	}
}
