package policy

import "github.com/mcp-toolhub/mcp-toolhub/internal/textfile"

// Faults is every fault of one file of rules, grants or test calls, sorted by place. A file with faults is refused whole:
// half of a policy is another policy. The type tells them from the faults of a config.
type Faults struct{ textfile.Faults }
