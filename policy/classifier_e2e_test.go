//go:build e2e

package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

func TestClassifiers(t *testing.T) {
	t.Parallel()
	allow := policy.Rule{ID: "ok", Match: []string{"mcp.ok.*"}, Then: tool.Allow}
	deny := policy.Rule{ID: "no", Match: []string{"mcp.no.*"}, Then: tool.Deny}
	each := policy.Rule{ID: "each", Match: []string{"mcp.each.*"}, Then: tool.Ask, EveryTime: true}
	for _, c := range []struct {
		says           string
		config         policy.ClassifierConfig
		mode           policy.Mode
		ok, other, one tool.Behavior // of a call that a rule allows, of one that is asked about, of one asked every time
		failure        string
	}{
		{says: `{"behavior":"deny","confidence":0.9,"reason":"looks like a leak"}`, ok: tool.Deny, other: tool.Deny, one: tool.Deny},
		{says: `{"behavior":"ask"}`, ok: tool.Ask, other: tool.Ask, one: tool.Ask},
		{says: `{"behavior":"allow","confidence":1}`, ok: tool.Allow, other: tool.Ask, one: tool.Ask},
		{says: `{"behavior":"allow","confidence":1}`, config: policy.ClassifierConfig{MayAllow: true}, ok: tool.Allow, other: tool.Allow, one: tool.Ask},
		{says: `{"behavior":"allow","confidence":0.8}`, config: policy.ClassifierConfig{MayAllow: true, MinConfidence: 0.9}, ok: tool.Allow, other: tool.Ask, one: tool.Ask},
		{says: `{"behavior":"allow"}`, config: policy.ClassifierConfig{MayAllow: true, MinConfidence: 0.9}, ok: tool.Allow, other: tool.Ask, one: tool.Ask},
		{says: `{"behavior":"passthrough"}`, config: policy.ClassifierConfig{MayAllow: true}, ok: tool.Ask, other: tool.Ask, one: tool.Ask, failure: "none of allow, ask and deny"},
		{says: `{"behavior":"allow","confidence":7}`, config: policy.ClassifierConfig{MayAllow: true}, ok: tool.Ask, other: tool.Ask, one: tool.Ask, failure: "confidence"},
		{says: `no JSON`, config: policy.ClassifierConfig{MayAllow: true}, ok: tool.Ask, other: tool.Ask, one: tool.Ask, failure: "no JSON object"},
		{says: `{"behavior":"allow","reason":"` + strings.Repeat("x", 70<<10) + `"}`, config: policy.ClassifierConfig{MayAllow: true}, ok: tool.Ask, other: tool.Ask, one: tool.Ask, failure: "64 KiB"},
		{says: "failure", config: policy.ClassifierConfig{MayAllow: true}, ok: tool.Ask, other: tool.Ask, one: tool.Ask, failure: "3"},
		{says: "silence", config: policy.ClassifierConfig{MayAllow: true, Timeout: 300 * time.Millisecond}, ok: tool.Ask, other: tool.Ask, one: tool.Ask, failure: "no answer within"},
		{says: `{"behavior":"ask"}`, mode: policy.ModeClient, ok: tool.Passthrough, other: tool.Passthrough, one: tool.Passthrough},
		{says: `{"behavior":"deny"}`, mode: policy.ModeAcceptAll, ok: tool.Deny, other: tool.Deny, one: tool.Deny},
		{says: `{"behavior":"ask"}`, mode: policy.ModeAcceptAll, ok: tool.Allow, other: tool.Allow, one: tool.Allow},
	} {
		for kind, config := range classifiers(t, c.says, c.config) {
			e := compile(t, policy.Settings{Mode: c.mode, Sets: user(allow, deny, each), Classifier: policy.NewClassifier(config)})
			for name, want := range map[tool.Name]tool.Behavior{"mcp.ok.x": c.ok, "mcp.other.x": c.other, "mcp.each.x": c.one, "mcp.no.x": tool.Deny} {
				d := e.Classify(t.Context(), writer(name))
				checkRecord(t, d)
				if d.Behavior != want || d.PendingClassifierCheck != nil {
					t.Errorf("%s says %.60s: %s is %s %v, want %s", kind, c.says, name, d.Behavior, d.Reason, want)
				}
				opinion, ok := d.Reason["classifier"].(*policy.Opinion)
				if name == "mcp.no.x" {
					if ok {
						t.Errorf("%s was asked about a call that is denied", kind)
					}
					continue
				}
				if !ok || c.failure != "3" && !strings.Contains(opinion.Failure, c.failure) || (opinion.Failure != "") != (c.failure != "") {
					t.Errorf("%s says %.60s: recorded %+v", kind, c.says, opinion)
				}
				if text := fmt.Sprintf("%+v", d); strings.Contains(text, "secret-path") || strings.Contains(text, "Bearer") {
					t.Errorf("%s: the record holds a secret: %s", kind, text)
				}
			}
		}
	}
}
