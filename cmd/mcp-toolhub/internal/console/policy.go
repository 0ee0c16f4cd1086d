package console

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// policy shows the rules, and the answers that are remembered.
func (v *visit) policy() (*page, error) {
	type grant struct {
		control.Grant
		Covers string
	}
	rules, grants := v.Hub.Rules(), v.Hub.Grants()
	at, pager := v.part(max(len(rules), len(grants)), rulesPerPage)
	var list []grant
	for _, g := range grants[min(at, len(grants)):min(at+rulesPerPage, len(grants))] {
		list = append(list, grant{g, gate.Covers(&policy.SuggestedGrant{Targets: g.Targets, Exact: g.Exact})})
	}
	return &page{Name: "policy", Title: "Policy", Live: true, Data: map[string]any{"Pager": pager,
		"Rules": rules[min(at, len(rules)):min(at+rulesPerPage, len(rules))], "Grants": list}}, nil
}

// explain shows what would happen to a call, as "policy explain" says it.
func (v *visit) explain() (*page, error) {
	q := v.r.URL.Query()
	e := control.Call{Tool: tool.Name(q.Get("tool")), Actor: tool.Actor{Name: q.Get("as"), Door: q.Get("door")},
		Input: json.RawMessage(cmp.Or(strings.TrimSpace(q.Get("arguments")), "{}"))}
	said := ""
	if e.Tool != "" {
		if !json.Valid(e.Input) || e.Input[0] != '{' {
			return nil, &fault{http.StatusBadRequest,
				"The arguments are no JSON object: write one, such as {\"path\": \"/tmp/x\"}."}
		}
		var err error
		if said, err = v.Hub.Decision(v.r.Context(), e); err != nil {
			return nil, wrong(err)
		}
	}
	return &page{Name: "explain", Title: "Explain a decision",
		Data: map[string]any{"Asked": e, "Arguments": string(e.Input), "Said": said,
			"Doors": []string{"stdio", "http", "cli", Door}}}, nil
}

// revoke forgets a remembered answer.
func (v *visit) revoke() (*page, error) {
	if err := v.Hub.Revoke(v.r.PathValue("id")); err != nil {
		return nil, wrong(err)
	}
	v.sessions.say(v.session, "Forgotten: calls like that are asked about again.")
	return &page{Redirect: Path + "policy"}, nil
}
