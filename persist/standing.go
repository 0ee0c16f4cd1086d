package persist

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const (
	// ObjectStanding is the member object of lines with records that others name by an id. Each
	// file has one before the first of those, so that nothing is missing when older files are
	// removed. Readers yield its records once.
	ObjectStanding tool.Object = "standing_records"

	standingVersion = 1
	standingPrefix  = `{"object":"` + string(ObjectStanding) + `"`
)

// standingLine is such a line, as it is written and as it is read.
type standingLine[R any] struct {
	Object  tool.Object `json:"object"`
	Version int         `json:"version"`
	Key     string      `json:"key"`
	Records []R         `json:"records"`
}

// standing returns lines with what b names and the current file does not hold, and their keys.
func (f *files) standing(b *batch) (lines []byte, keys []string) {
	for _, s := range b.names {
		if !f.held[s.StandingKey()] {
			lines, keys = f.hold(s, lines, keys)
		}
	}
	return lines, keys
}

// hold adds the line of s to lines, and its key to keys.
func (f *files) hold(s tool.Standing, lines []byte, keys []string) ([]byte, []string) {
	l := standingLine[tool.Record]{ObjectStanding, standingVersion, s.StandingKey(), s.StandingRecords()}
	if len(l.Records) == 0 {
		return lines, keys
	}
	if f.held == nil {
		f.held = make(map[string]bool)
	}
	f.held[l.Key] = true // so that it comes once; forget takes that back
	start := len(lines)
	next, err := appendChecked(lines, l)
	if err != nil {
		f.logger.Warn("a record that others name is not in the journal", "id", l.Key, "error", err)
		return lines, keys
	}
	if f.cfg.Secrets != nil {
		next = append(next[:start], maskRecords(next[start:], f.cfg.Secrets)...)
	}
	return endLine(next, start), append(keys, l.Key)
}

// maskRecords is a line with standing records, without their secrets.
func maskRecords(line []byte, secrets *secret.Masker) []byte {
	records, _ := rawjson.Get(line, "records")
	masked, n := secrets.JSON(records)
	if n == 0 {
		return line
	}
	at := cap(line) - cap(records)
	return slices.Concat(line[:at], masked, line[at+len(records):])
}

// forget takes back that the current file holds what has these keys.
func (f *files) forget(keys []string) {
	for _, key := range keys {
		delete(f.held, key)
	}
}

// standing yields the objects of such a line, unless an earlier one had them. Those of a tool follow
// from its version.
func (d *deriver) standing(line json.RawMessage, yield func(json.RawMessage) bool) (more bool, err error) {
	var l standingLine[json.RawMessage]
	if err := json.Unmarshal(line, &l); err != nil || l.Version != standingVersion {
		return true, fmt.Errorf("holds standing records of version %d, which cannot be read: %w", l.Version, err)
	}
	if !d.isNew(l.Key) {
		return true, nil
	}
	for _, r := range l.Records {
		objects := []json.RawMessage{r}
		if tool.Object(rawjson.Text(r, "object")) == tool.ObjectVersion {
			var v tool.Version
			if err := json.Unmarshal(r, &v); err != nil {
				return true, fmt.Errorf("holds no version of a tool: %w", err)
			}
			objects = v.Objects(l.Key)
		}
		for _, o := range objects {
			if space := rawjson.Text(o, "namespace_id"); space != "" && !d.isNew("namespace_id "+space) {
				continue
			}
			if !yield(o) {
				return false, nil
			}
		}
	}
	return true, nil
}

// isNew reports whether nothing with that key has come before.
func (d *deriver) isNew(key string) bool {
	if d.stood == nil {
		d.stood = make(map[string]bool)
	}
	before := d.stood[key]
	d.stood[key] = true
	return !before
}

func isStanding(line []byte) bool { return bytes.HasPrefix(line, []byte(standingPrefix)) }
