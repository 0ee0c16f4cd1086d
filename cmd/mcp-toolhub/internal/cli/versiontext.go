package cli

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
)

// versionText says which program this is, and the commit that it was built from where that is known.
func versionText() string {
	var commit, date string
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				commit = s.Value
			case "vcs.time":
				date = s.Value
			}
		}
	}
	if len(commit) >= 12 {
		commit = "commit " + commit[:12] + " of " + date + ", "
	}
	return fmt.Sprintf("mcp-toolhub %s (%s%s, %s/%s)", hub.Version(), commit, runtime.Version(), runtime.GOOS,
		runtime.GOARCH)
}

func versionCommand(a *app) *cobra.Command {
	return leaf("version", "Print the version, and the commit that it was built from", "", func(context.Context) error {
		return a.std.print([]byte(versionText()))
	})
}
