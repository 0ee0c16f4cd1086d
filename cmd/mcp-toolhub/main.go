// Command mcp-toolhub is one MCP endpoint in front of many MCP servers. See README.md.
package main

import "github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/cli"

func main() { cli.Main() }
