package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
)

// refusalCase is what a client answers to the question of the hub after a while, and what becomes of the call.
type refusalCase struct {
	result string
	after  time.Duration
	queue  policy.Choice // what a person in the queue says; "" where nobody is there, "none" where nobody answers
	class  tool.ErrorClass
	tells  string // in the result
	record string // in the decision that counts
}

// A client without a person refuses at once. That is nobody's answer: the next channel is tried for
// a while, the records say so, and the question stays open.
func TestARefusalAtOnceIsNobodys(t *testing.T) {
	t.Parallel()
	const cancel, decline = `{"action":"cancel"}`, `{"action":"decline"}`
	const notAsked = `"could_not_ask":"the client refused the question after %d ms, as one does that has no person to ask"`
	at := func(ms int) string { return fmt.Sprintf(notAsked, ms) }
	accept := func(choice string) string { return `{"action":"accept","content":{"answer":"` + choice + `"}}` }
	for i, c := range []refusalCase{
		{cancel, 50 * time.Millisecond, "", tool.ClassPermissionDenied, "the client refused the question after 50 ms", at(50)},
		{decline, 299 * time.Millisecond, "", tool.ClassPermissionDenied, "the client refused the question after 299 ms", at(299)},
		{cancel, 0, "none", tool.ClassTimeout, "waits for approval apr_", `"type":"call_ended"`},
		{cancel, 50 * time.Millisecond, policy.AllowOnce, "", "content", at(50)},
		{decline, 50 * time.Millisecond, policy.DenyOnce, tool.ClassApprovalRejected, "a person denied this call", at(50)},
		{decline, 300 * time.Millisecond, policy.AllowOnce, tool.ClassApprovalRejected, "a person denied this call", `"by":"elicitation/ann","choice":"deny_once"`},
		{cancel, 300 * time.Millisecond, policy.AllowOnce, tool.ClassApprovalRejected, "was dismissed without an answer", `"dismissed":true`},
		{accept("allow_once"), 0, "", "", "content", `"by":"elicitation/ann","choice":"allow_once"`}, // a program may answer
		{accept("deny_once"), 0, policy.AllowOnce, tool.ClassApprovalRejected, "a person denied this call", `"choice":"deny_once"`},
		{accept("allow_always"), time.Minute, "", tool.ClassPermissionDenied, noAnswer, noAnswer}, // which is not offered
		{accept("yes"), 0, "", tool.ClassPermissionDenied, noAnswer, noAnswer},
		{`{"action":"accept"}`, time.Minute, "", tool.ClassPermissionDenied, noAnswer, noAnswer},
		{`{"action":"accept","content":{}}`, 0, policy.AllowOnce, "", "content", noAnswer},
		{`{"action":"maybe"}`, time.Minute, "", tool.ClassPermissionDenied, "the client's answer cannot be read", "cannot be read"},
		{`[]`, 0, "", tool.ClassPermissionDenied, "the client's answer cannot be read", "cannot be read"},
	} {
		for _, rounds := range []bool{false, true} {
			t.Run(fmt.Sprint(i, " ", c.result, " ", c.after, " ", c.queue, " ", rounds), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { c.test(t, rounds) })
			})
		}
	}
}

func (c refusalCase) test(t *testing.T, rounds bool) {
	b := newBench(t, "", ok(`{"content":[]}`))
	b.guarded(t)
	b.around.open = c.queue != ""
	call := b.callInRounds(t.Context(), `{"name":"x"}`)
	call.InputByRetry, call.Progress = rounds, func(tool.Progress) {}
	call.Ask = func(_ context.Context, q []tool.Question) ([]tool.Answer, error) {
		time.Sleep(10 * time.Second) // until the wire takes the question
		tool.Sent(q)
		meta, _ := rawjson.Get(q[0].Params, "_meta")
		if got := string(rawjson.GetObject(meta, metaDisplay)); !strings.HasPrefix(got, `{"title":"mcp-toolhub asks: may mcp.s.t (server s) run?","displayName":"mcp.s.t","description":"Arguments: `) {
			t.Errorf("shown as %s", got)
		}
		time.Sleep(c.after)
		return []tool.Answer{{Result: json.RawMessage(c.result)}}, nil
	}
	ended := make(chan Outcome, 1)
	go func() { ended <- b.Invoke(t.Context(), call) }()
	synctest.Wait()
	if strings.Contains(c.record, "could_not_ask") {
		time.Sleep(10*time.Second + c.after + aloneFor - time.Second) // the call waits a moment longer
	} else {
		time.Sleep(time.Minute + maxForms*c.after) // the client has answered, as often as it is asked
	}
	synctest.Wait()
	if open := b.opts.Approvals.List(); c.queue != "none" && len(open) > 0 {
		if err := b.opts.Approvals.Answer(open[0].ID, approval.Answer{Choice: c.queue, By: "queue/op"}); err != nil {
			t.Error(err)
		}
	}
	o := <-ended
	if o.Class != c.class || !strings.Contains(string(o.Result), c.tells) {
		t.Errorf("class %q: %s", o.Class, o.Result)
	}
	if open := b.opts.Approvals.List(); (c.class == tool.ClassTimeout) != (len(open) == 1 && open[0].State == approval.Pending) {
		t.Errorf("open: %+v", open)
	}
	reason := ""
	for _, r := range b.records(t) {
		validateRecord(t, r)
		if r["object"] == "tool_permission_decision" {
			text, _ := json.Marshal(r["reason"])
			reason = string(text)
		}
	}
	if !strings.Contains(reason, c.record) || strings.Contains(reason, "could_not_ask") != (strings.Contains(c.record, "not_ask") || !strings.Contains(c.record, `"`)) {
		t.Errorf("the decision that counts says %s, want %s", reason, c.record)
	}
}
