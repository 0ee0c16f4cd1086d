package schema

import (
	"container/list"
	"encoding/json"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// defaultCacheSize is the default for the number of schemas that a cache holds.
const defaultCacheSize = 20_000

// Cache holds compiled schemas by the digest of their text, the least recently used leaving first. It is safe for
// concurrent use. Failures are kept as well: a schema that does not compile costs its time once.
type Cache struct {
	max int

	mu      sync.Mutex
	entries map[string]*list.Element // of *entry
	recent  *list.List               // most recently used first
}

type entry struct {
	digest string
	once   sync.Once
	schema *Schema
	err    error
}

// NewCache returns a cache of at most max schemas; 0 or less means defaultCacheSize.
func NewCache(max int) *Cache {
	if max <= 0 {
		max = defaultCacheSize
	}
	return &Cache{max: max, entries: make(map[string]*list.Element), recent: list.New()}
}

// Get returns raw compiled. digest is tool.Digest of raw; where it is "", Get computes it. Of several callers that ask
// for the same new schema, one compiles and the others wait for it.
func (c *Cache) Get(digest string, raw json.RawMessage) (*Schema, error) {
	if digest == "" {
		digest = tool.Digest(raw)
	}
	e := c.entry(digest)
	e.once.Do(func() { e.schema, e.err = Compile(raw) })
	return e.schema, e.err
}

func (c *Cache) entry(digest string) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.entries[digest]; ok {
		c.recent.MoveToFront(element)
		return element.Value.(*entry)
	}
	e := &entry{digest: digest}
	c.entries[digest] = c.recent.PushFront(e)
	if c.recent.Len() > c.max {
		oldest := c.recent.Back()
		c.recent.Remove(oldest)
		delete(c.entries, oldest.Value.(*entry).digest)
	}
	return e
}
