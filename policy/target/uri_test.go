package target_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// A URI of a file or of a host is read as a tool's address. Of any other the sensitive paths and forbidden hosts count that are in it.
func TestURIs(t *testing.T) {
	t.Parallel()
	limits, err := target.NewLimits(target.Config{DeniedHosts: []string{"evil.example"}}, target.HubPaths{Secrets: []string{"/hub"}})
	if err != nil {
		t.Fatal(err)
	}
	for uri, want := range map[string]string{
		"file:///a/b":                     "path /a/b",
		"FILE:/a/../hub/key":              "path /hub/key",
		"https://host.example/a?b":        "url host.example",
		"http:\\\\host.example":           "url host.example",
		"own://guide":                     "resource own://guide",
		"own:guide/one":                   "resource own:guide/one",
		"guide":                           "resource guide",
		"own:///hub/key":                  "resource own:///hub/key, path /hub/key",
		"own://a/%68ub/key":               "resource own://a/%68ub/key, path /hub/key",
		"own://hub/key":                   "resource own://hub/key, path /hub/key",
		"own://a?path=/hub/key":           "resource own://a?path=/hub/key, path /hub/key",
		"own://evil.example/a":            "resource own://evil.example/a, url evil.example",
		"own://good.example/a":            "resource own://good.example/a",
		"own://2852039166/a":              "resource own://2852039166/a",
		"own://169.254.169.254:80/latest": "resource own://169.254.169.254:80/latest, url 169.254.169.254",
	} {
		targets, inside := target.OfURI("/uri", uri, target.NewRoot("/work", "/home/ann"))
		var got []string
		for _, one := range append(targets, slices.DeleteFunc(inside, func(t target.Target) bool { return !limits.Guards(&t) })...) {
			text := string(one.Kind) + " " + one.Resolved
			if one.Kind == target.URL {
				text = "url " + one.Host
			}
			if !slices.Contains(got, text) {
				got = append(got, text)
			}
			if one.Fault != "" {
				t.Errorf("%s: the target %s %s", uri, one.Resolved, one.Fault)
			}
		}
		if all := strings.Join(got, ", "); all != want {
			t.Errorf("%s is aimed at %s, want %s", uri, all, want)
		}
	}
}
