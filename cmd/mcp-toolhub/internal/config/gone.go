package config

// The functions below return the keys that are no more, section by section, and what to do about each.

const fixed = "remove it: the hub has a fixed value"

func all(instead string, names ...string) map[string]string {
	gone := make(map[string]string, len(names))
	for _, name := range names {
		gone[name] = instead
	}
	return gone
}

func goneHTTP() map[string]string {
	return map[string]string{"session_idle": fixed, "max_body_bytes": "write it as hub.limits.client_message"}
}

func goneDeferred() map[string]string {
	return map[string]string{"ref_ttl": fixed, "keys": "give the hubs the same state.key, in the state directory"}
}

func goneServer() map[string]string {
	gone := all(fixed, "max_queued")
	gone["timeouts"] = "write its call as timeout, and call_max as timeout_max"
	gone["session_idle"] = "write it as idle_stop"
	gone["when_down"] = "remove it: the tools of a server that is down stay listed"
	gone["validate_output"] = "remove it: results that do not fit pass, and the record says what is wrong"
	gone["scheduling"] = "write policy: {tools: [{match: mcp.SERVER.*, concurrency: exclusive}]}"
	return gone
}

func goneLimits() map[string]string {
	return all(fixed, "pages", "catalog", "tools", "tool_size", "schema_depth")
}
