package suspended

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// ending is a call that notes why it ended.
func ending(why *string) *Call[string] {
	return &Call[string]{Resume: func(context.Context, string, json.RawMessage) {}, End: func(f *tool.Failure) { *why = f.Message }}
}

// A requestState takes its call out of the table once, and only for the request that it was given for.
func TestTake(t *testing.T) {
	t.Parallel()
	table, err := New[string](nil)
	if err != nil {
		t.Fatal(err)
	}
	s := State{Caller: "ann", Profile: "p", Server: "s", Method: "tools/call", Name: "n", Arguments: ArgumentsDigest(nil)}
	var why string
	text, failure := table.Add(t.Context(), s, time.Hour, json.RawMessage(`"own"`), ending(&why))
	if failure != nil || table.Len() != 1 {
		t.Fatal(failure)
	}
	other := s
	other.Caller = "bob"
	if _, _, refusal := table.Take(text, other); refusal == nil || !strings.Contains(refusal.Message, "another request") {
		t.Errorf("another caller: %v", refusal)
	}
	if c, own, refusal := table.Take(text, s); refusal != nil || c == nil || string(own) != `"own"` {
		t.Errorf("%v %s %v", c, own, refusal)
	}
	if _, _, refusal := table.Take(text, s); refusal == nil || !strings.Contains(refusal.Message, "used before") {
		t.Errorf("again: %v", refusal)
	}
	if _, _, refusal := table.Take("x"+text, s); refusal == nil {
		t.Error("a changed text was taken")
	}
	if table.Len() != 0 || why != "" {
		t.Errorf("%d calls, ended: %q", table.Len(), why)
	}
}

// Calls end with their time, their caller, or the table, and each caller has only so many.
func TestEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table, err := New[string](nil)
		if err != nil {
			t.Fatal(err)
		}
		why := make([]string, MaxOfCaller+2)
		for i := range MaxOfCaller {
			if _, failure := table.Add(t.Context(), State{Caller: "ann"}, time.Duration(i+1)*time.Second, nil, ending(&why[i])); failure != nil {
				t.Fatal(failure)
			}
		}
		if _, failure := table.Add(t.Context(), State{Caller: "ann"}, time.Hour, nil, ending(&why[0])); failure == nil {
			t.Error("a caller has too many calls")
		}
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if table.Len() != MaxOfCaller-1 || why[0] == "" {
			t.Errorf("%d calls after the first one's time: %q", table.Len(), why[0])
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, failure := table.Add(gone, State{Caller: "bob"}, time.Hour, nil, ending(&why[MaxOfCaller])); failure == nil {
			t.Error("a client that has gone got a requestState")
		}
		table.EndWhere(func(caller string) bool { return caller == "ann" }, &tool.Failure{Message: "gone"})
		if table.Len() != 0 || why[1] != "gone" || why[MaxOfCaller-1] != "gone" {
			t.Errorf("%d calls of a caller that has gone: %q", table.Len(), why)
		}
		if _, failure := table.Add(t.Context(), State{Caller: "bob"}, time.Hour, nil, ending(&why[MaxOfCaller])); failure != nil {
			t.Error(failure)
		}
		table.Close(&tool.Failure{Message: "stop"})
		_, failure := table.Add(t.Context(), State{Caller: "bob"}, time.Hour, nil, ending(&why[0]))
		if got := fmt.Sprint(why[MaxOfCaller], " ", failure.Message); got != "stop stop" {
			t.Error(got)
		}
	})
}

// TestTakeDone: a call that has ended without its client goes to the next equal one, once. One that still runs, or is another
// caller's, stays where it is.
func TestTakeDone(t *testing.T) {
	t.Parallel()
	table, err := New[string](nil)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close(&tool.Failure{})
	done := make(chan struct{})
	one := State{Caller: "ann", Method: "tools/call", Name: "x", Arguments: "digest"}
	other := one
	other.Caller = "bob"
	var why string
	for _, s := range []State{one, other} {
		c := ending(&why)
		c.Done = done
		if _, failure := table.Add(t.Context(), s, time.Hour, nil, c); failure != nil {
			t.Fatal(failure)
		}
	}
	if table.TakeDone(one) != nil {
		t.Error("a call that still runs is taken")
	}
	close(done)
	if table.TakeDone(one) == nil || table.TakeDone(one) != nil || table.Len() != 1 {
		t.Errorf("not taken once: %d calls are left", table.Len())
	}
}
