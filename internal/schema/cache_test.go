package schema

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

func TestCacheCompilesOnce(t *testing.T) {
	t.Parallel()
	c := NewCache(2)
	raw := json.RawMessage(`{"type":"object"}`)
	got := make([]*Schema, 50)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			digest := ""
			if i%2 == 0 {
				digest = tool.Digest(raw)
			}
			s, err := c.Get(digest, raw)
			if err != nil {
				t.Error(err)
			}
			got[i] = s
		})
	}
	wg.Wait()
	for _, s := range got {
		if s != got[0] {
			t.Fatal("one schema was compiled twice")
		}
	}
}

func TestCacheKeepsFailures(t *testing.T) {
	t.Parallel()
	c := NewCache(2)
	_, first := c.Get("", json.RawMessage(`{"type":7}`))
	_, second := c.Get("", json.RawMessage(`{"type":7}`))
	if first == nil || first != second {
		t.Errorf("the failure was not kept: %v, %v", first, second)
	}
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := NewCache(3)
	get := func(i int) *Schema {
		s, err := c.Get("", json.RawMessage(fmt.Sprintf(`{"title":"%d"}`, i)))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := get(0)
	for i := range 10 {
		get(i)
		if n := len(c.entries); n > 3 {
			t.Errorf("%d schemas in a cache of 3", n)
		}
	}
	if get(0) == first {
		t.Error("the unused schema is still there")
	}
}
