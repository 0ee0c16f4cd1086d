package tool

import (
	"encoding/json"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// TaskExtension is the extension by which servers of 2026-07-28 make tasks of calls.
const TaskExtension = "io.modelcontextprotocol/tasks"

// Methods about tasks. A task is known to the caller whose call it was made of, and to nobody else.
const (
	MethodTaskGet    = "tasks/get"
	MethodTaskResult = "tasks/result" // 2025-11-25
	MethodTaskList   = "tasks/list"   // 2025-11-25
	MethodTaskCancel = "tasks/cancel"
	MethodTaskUpdate = "tasks/update" // 2026-07-28
)

// Notifications of a server about something that it has named by an id before.
const (
	NoteTaskStatus = "notifications/tasks/status" // 2025-11-25
	NoteTask       = "notifications/tasks"        // 2026-07-28, to those who listen
	NoteElicited   = "notifications/elicitation/complete"
)

// MetaRelatedTask is the key of _meta that says which task a message belongs to.
const MetaRelatedTask = metaPrefix + "related-task"

const metaPrefix = "io.modelcontextprotocol/"

// OfHop reports whether a key of _meta belongs to one hop, and is not passed on. Those of tasks are for both ends.
func OfHop(key string) bool {
	return strings.HasPrefix(key, metaPrefix) && key != MetaRelatedTask && key != metaPrefix+"model-immediate-response"
}

// Declares reports whether capabilities hold an object at path.
func Declares(capabilities json.RawMessage, path ...string) bool {
	for _, name := range path {
		if !rawjson.IsObject(capabilities) {
			return false
		}
		capabilities, _ = rawjson.Get(capabilities, name)
	}
	return rawjson.IsObject(capabilities)
}

// WithoutHop returns object, the params of a notification or a result, without the members of _meta
// that belong to a hop.
func WithoutHop(object json.RawMessage) (json.RawMessage, error) {
	meta, ok := rawjson.Get(object, "_meta")
	if !ok || !rawjson.IsObject(meta) {
		return object, nil
	}
	rest, some, err := rawjson.DeleteFunc(meta, func(m rawjson.Member) bool { return OfHop(m.Name()) })
	if err != nil || !some {
		return object, err
	}
	left := false
	_ = rawjson.Members(rest, func(rawjson.Member) bool { left = true; return false })
	if left {
		return rawjson.Set(object, "_meta", rest)
	}
	object, _, err = rawjson.Delete(object, "_meta")
	return object, err
}
