package schema

import (
	"encoding/json"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Cache holds compiled schemas by the digest of their text. A full one is emptied. It is safe for concurrent use.
// Failures are kept as well: a schema that does not compile costs its time once.
type Cache struct {
	max int

	mu      sync.Mutex
	entries map[string]*entry
}

type entry struct {
	once   sync.Once
	schema *Schema
	err    error
}

// NewCache returns a cache of at most max schemas.
func NewCache(max int) *Cache { return &Cache{max: max, entries: make(map[string]*entry)} }

// Get returns raw compiled. digest is tool.Digest of raw; where it is "", Get computes it. Of several callers that ask
// for the same new schema, one compiles and the others wait for it.
func (c *Cache) Get(digest string, raw json.RawMessage) (*Schema, error) {
	if digest == "" {
		digest = tool.Digest(raw)
	}
	c.mu.Lock()
	e := c.entries[digest]
	if e == nil {
		if len(c.entries) >= c.max {
			clear(c.entries)
		}
		e = &entry{}
		c.entries[digest] = e
	}
	c.mu.Unlock()
	e.once.Do(func() { e.schema, e.err = Compile(raw) })
	return e.schema, e.err
}
