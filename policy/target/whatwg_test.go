package target_test

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// nodeReads is how Node's URL reads an address, by testdata/whatwg.mjs.
type nodeReads struct {
	Input, Base    string
	Protocol, Host *string // nil where it refuses
}

func whatwgTable(t *testing.T) []nodeReads {
	t.Helper()
	raw, err := os.ReadFile("testdata/whatwg.json")
	must(t, err)
	if node, err := exec.LookPath("node"); err == nil {
		now, err := exec.CommandContext(t.Context(), node, "testdata/whatwg.mjs").Output()
		must(t, err)
		if !bytes.Equal(now, raw) {
			t.Error("testdata/whatwg.json is not what Node says: run node whatwg.mjs > whatwg.json there, and look at what has changed")
		}
	} else {
		t.Log("there is no node: taking testdata/whatwg.json as it is")
	}
	var table []nodeReads
	must(t, json.Unmarshal(raw, &table))
	if len(table) < 1000 {
		t.Fatalf("%d cases", len(table))
	}
	return table
}

// wanted is the host that Node goes to, as Target.Host has it; "" for none.
func (n *nodeReads) wanted() string {
	web := []string{"http:", "https:", "ws:", "wss:", "ftp:"}
	if n.Host == nil || !slices.Contains(web, *n.Protocol) || *n.Host == "base.example" {
		return ""
	}
	host := strings.TrimSuffix(strings.Trim(*n.Host, "[]"), ".")
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().String()
	}
	if strings.HasSuffix(host, ".") {
		return "" // no server has such a name
	}
	return host
}

// TestAddressesAreReadAsNodeReadsThem: whatever host Node would go to is judged, and none that it refuses passes.
func TestAddressesAreReadAsNodeReadsThem(t *testing.T) {
	t.Parallel()
	fetch := plan(t, "fetch", `"url":{"type":"string"},"more":{"type":"object"}`)
	for _, c := range whatwgTable(t) {
		want := c.wanted()
		all := resolve(t, fetch, map[string]string{"url": c.Input}, target.Root{})
		for _, got := range all {
			switch {
			case got.Fault != "" || got.Kind != target.URL || got.Host == "": // refused, or reaches nobody
			case want != "" && got.Host != want:
				t.Errorf("%q: host %q, for Node %q", c.Input, got.Host, want)
			case c.Host == nil && strings.HasPrefix(c.Input, "http://") && strings.TrimSpace(c.Input) == c.Input && !strings.Contains(c.Input, "[["):
				t.Errorf("%q: host %q, and Node refuses it", c.Input, got.Host)
			}
		}
		limits, err := target.NewLimits(target.Config{DeniedHosts: []string{want}}, target.HubPaths{})
		if want == "" || err != nil { // no name that a server has: a!b
			if want != "" && len(all) > 0 && all[0].Fault == "" {
				t.Errorf("%q: %+v, and %q is no host: %v", c.Input, all, want, err)
			}
			continue
		}
		denied := func(where string, targets []target.Target) {
			for _, found := range limits.Judge(targets, target.Root{}) {
				if found.Code == target.HostDenied {
					return
				}
			}
			t.Errorf("%s %q is let through to %q: %+v", where, c.Input, want, targets)
		}
		denied("url", all)
		if strings.Contains(c.Input, ":") && c.Base == "" {
			nested, err := fetch.Resolve(t.Context(), json.RawMessage(`{"more":{"q":`+string(rawjson.Quote(c.Input))+`}}`), target.Root{})
			must(t, err)
			denied("nested", nested)
		}
	}
}
