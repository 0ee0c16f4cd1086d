package command

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Report returns the Progress of a Spec that tells a call how its command is getting on; nil where nobody listens.
func Report(progress func(tool.Progress)) func(time.Duration, int64) {
	if progress == nil {
		return nil
	}
	return func(took time.Duration, output int64) {
		progress(tool.Progress{Params: json.RawMessage(fmt.Sprintf(`{"progress":%d,"message":"running for %v, %d bytes of output so far"}`,
			int64(took.Seconds()), took.Round(time.Second), output))})
	}
}
