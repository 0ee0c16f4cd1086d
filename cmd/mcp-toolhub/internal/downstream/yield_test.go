package downstream

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// A call that waits for a person in the queue is answered after 50 s where its request has no
// progress token, whatever the revision; one with a token waits on.
func TestACallWithoutATokenIsToldToCallAgain(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		for _, token := range []string{"", `"progressToken":7`} {
			t.Run(fmt.Sprint(modern, token), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					guarded, err := gate.New(gate.Config{Mode: policy.ModeDefault}, gate.Options{})
					if err != nil {
						t.Fatal(err)
					}
					approvals := approval.New(approval.Options{})
					defer approvals.Close()
					s := newServer(t, Config{}, &far{options: func(o *invoke.Options) {
						o.Settings, o.People, o.Approvals = around{gate: guarded}, around{open: true}, approvals
					}})
					c, leave := pipe(t, s)
					meta := token
					if modern {
						meta = strings.Trim(token+","+modernMeta, ",") // it cannot be asked itself
					} else {
						c.send(capable("2025-11-25", `{}`))
					}
					began, heard := time.Now(), 0
					got := c.send(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"mcp.s.echo","arguments":{},"_meta":{` + meta + `}}}`)
					for ; strings.Contains(got[0], `"method":"notifications/progress"`) && heard < 30; heard++ {
						got = c.send("") // nothing more, and the next line
					}
					switch took := time.Since(began); {
					case token != "" && (heard < 30 || took < 2*time.Minute):
						t.Errorf("after %v and %d reports: %v", took, heard, got)
					case token == "" && (took != 50*time.Second ||
						!strings.Contains(got[0], `"status":"yielded","error_class":"timeout"`) ||
						!strings.Contains(got[0], "; call again")):
						t.Errorf("after %v: %v", took, got)
					}
					approvals.Close()
					if err := leave(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}
