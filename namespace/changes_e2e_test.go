//go:build e2e

package namespace

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

func TestInstructionsAreBounded(t *testing.T) {
	t.Parallel()
	for _, servers := range []int{1, 2, 10, 300} {
		var catalogs []tool.Catalog
		for i := range servers {
			c := server(fmt.Sprintf("s%04d", i), "x")
			c.Instructions = strings.Repeat("é", maxDirect+i)
			if i == 1 {
				c.Instructions = "short"
			}
			catalogs = append(catalogs, c)
		}
		n := newNamespace(t, nil, catalogs...)
		f := features(t, n, DefaultProfile)
		text := f.Headline + "\n\n" + f.Instructions
		length, labels := utf8.RuneCountInString(text), strings.Count(text, "Server s")
		if !utf8.ValidString(text) || length > 4000 || length < 3800 {
			t.Errorf("%d servers: %d characters, valid %v", servers, length, utf8.ValidString(text))
		}
		if labels < min(servers, 30) || strings.Count(text, cutMark) < labels-1 {
			t.Errorf("%d servers: %d are named, %d cut", servers, labels, strings.Count(text, cutMark))
		}
		if strings.Contains(text, "left out") != (labels < servers) {
			t.Errorf("%d servers: what is left out is not said, or said in vain", servers)
		}
		if servers > 1 && !strings.Contains(text+"\n", "\n  short\n") {
			t.Errorf("%d servers: the short one is cut, too", servers)
		}
		if direct := features(t, n, "s/s0000").Instructions; utf8.RuneCountInString(direct) != maxDirect || strings.Contains(direct, "cut") {
			t.Errorf("direct view: %d characters, which end in %q", utf8.RuneCountInString(direct), direct[len(direct)-20:])
		}
	}
}
