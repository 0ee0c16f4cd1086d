package run

import (
	"fmt"
	"os"
	"strconv"
)

// A hub whose config starts the hub itself would start hubs without end. So each program learns how
// many hubs are above it, and by which entry of a config it was started.
const (
	depthVariable = "MCP_TOOLHUB_DEPTH"
	entryVariable = "MCP_TOOLHUB_ENTRY"

	// maxDepth is the first depth at which no hub starts anything. One hub behind another one is in order.
	maxDepth = 2
)

// nested returns the variables to add to a program's environment, each as NAME=value. entry
// names, for people, the config and its entry that start the program. It is "" for other programs.
func nested(entry string) []string {
	return []string{depthVariable + "=" + strconv.Itoa(depth()+1), entryVariable + "=" + entry}
}

// CheckDepth is the error of a hub that a hub of a hub has started: it must start nothing.
func CheckDepth() error {
	if depth() < maxDepth {
		return nil
	}
	by := ""
	if entry := os.Getenv(entryVariable); entry != "" {
		by = ", by " + entry
	}
	return fmt.Errorf("a hub started this hub, and was itself started by a hub%s: they would start each other "+
		"without end; "+
		"take the entry that starts mcp-toolhub out of that config, or give it another config", by)
}

// IsNested reports whether a hub has started this process.
func IsNested() bool { return depth() > 0 }

// depth is the number of hubs above this process.
func depth() int {
	n, err := strconv.Atoi(os.Getenv(depthVariable))
	if err != nil {
		return 0
	}
	return max(n, 0)
}
