package config

// The functions below return the keys that are no more, section by section, and what to do about each.

const (
	fixed    = "remove it: the hub has a fixed value"
	leaveOut = "remove it: without the key around it there are no such tools"
)

// gone returns keys about all of which the same is to be done.
func gone(instead string, names ...string) map[string]string {
	keys := make(map[string]string, len(names))
	for _, name := range names {
		keys[name] = instead
	}
	return keys
}

func goneHub() map[string]string {
	keys := gone(fixed, "start_parallel", "first_list_within", "retry", "input_timeout")
	keys["tools"] = "remove it: the tool for several calls is listed where tools are deferred, and can be called " +
		"everywhere"
	return keys
}

func goneRunCommand() map[string]string {
	keys := gone(fixed, "stdout_limit", "stderr_limit")
	keys["enabled"] = leaveOut
	return keys
}

func goneDeclarative() map[string]string {
	const file = "write it in the files that need it, as "
	return map[string]string{
		"env":          file + "env_allowlist",
		"timeout":      file + "timeout_ms",
		"max_timeout":  "remove it: a file may have a timeout_ms of up to 24h",
		"stdout_limit": file + "stdout_limit_bytes",
		"stderr_limit": file + "stderr_limit_bytes",
	}
}

func goneHTTP() map[string]string {
	return map[string]string{"session_idle": fixed, "max_body_bytes": "write it as hub.limits.client_message"}
}

func goneDeferred() map[string]string {
	return map[string]string{"ref_ttl": fixed, "keys": "give the hubs the same state.key, in the state directory"}
}

func goneServer() map[string]string {
	return map[string]string{
		"max_queued":      fixed,
		"timeouts":        "write its call as timeout, and call_max as timeout_max",
		"session_idle":    "write it as idle_stop",
		"when_down":       "remove it: the tools of a server that is down stay listed",
		"validate_output": "remove it: results that do not fit pass, and the record says what is wrong",
	}
}

func goneLimits() map[string]string {
	return gone(fixed, "pages", "catalog", "tools", "tool_size", "schema_depth")
}

func goneFacts() map[string]string {
	keys := gone("remove it: the hub finds it out from the other facts", "risk", "access", "write_effects", "kind",
		"open_world", "filesystem", "interactive")
	keys["lifecycle"] = "list the tool in disabledTools of its server, or write a rule that denies it"
	return keys
}

func goneTargets() map[string]string {
	keys := gone(`write each as two hosts, "example.com" and "*.example.com", in allowed_hosts or denied_hosts`,
		"allowed_domains", "denied_domains")
	keys["allow_temp_writes"] = "list the directory in allowed_write_roots"
	return keys
}
