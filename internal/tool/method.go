package tool

// Methods of requests of clients. Those of tasks and of servers stand elsewhere.
const (
	MethodInitialize    = "initialize"
	MethodDiscover      = "server/discover"
	MethodPing          = "ping"
	MethodToolsCall     = "tools/call"
	MethodToolsList     = "tools/list"
	MethodPromptsList   = "prompts/list"
	MethodPromptsGet    = "prompts/get"
	MethodResourcesList = "resources/list"
	MethodTemplatesList = "resources/templates/list"
	MethodResourcesRead = "resources/read"
	MethodSubscribe     = "resources/subscribe"
	MethodUnsubscribe   = "resources/unsubscribe"
	MethodComplete      = "completion/complete"
	MethodSetLevel      = "logging/setLevel"
	MethodListen        = "subscriptions/listen"
)

// Methods of notifications. Those of tasks stand elsewhere.
const (
	NoteInitialized      = "notifications/initialized"
	NoteCancelled        = "notifications/cancelled"
	NoteProgress         = "notifications/progress"
	NoteRootsChanged     = "notifications/roots/list_changed"
	NoteMessage          = "notifications/message"
	NoteUpdated          = "notifications/resources/updated"
	NoteAcknowledged     = "notifications/subscriptions/acknowledged"
	NoteToolsChanged     = "notifications/tools/list_changed"
	NotePromptsChanged   = "notifications/prompts/list_changed"
	NoteResourcesChanged = "notifications/resources/list_changed"
)

// IsKnownNote reports whether the method is that of a notification of the protocol, of either side.
func IsKnownNote(method string) bool {
	switch method {
	case NoteInitialized, NoteCancelled, NoteProgress, NoteRootsChanged, NoteMessage, NoteUpdated, NoteAcknowledged,
		NoteToolsChanged, NotePromptsChanged, NoteResourcesChanged, NoteTask, NoteTaskStatus, NoteElicited:
		return true
	}
	return false
}
