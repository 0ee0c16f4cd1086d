package cli

// viewOf is the path of the direct view of a server.
func viewOf(server string) string { return "/mcp/s/" + server }
