package cli

import (
	"encoding/json"
)

// batched is what a test reads of a batch's result.
type batched struct {
	IsError           bool
	Content           []struct{ Text string }
	StructuredContent struct{ Results []batchedCall }
	Meta              struct {
		Invocation struct {
			ID    string `json:"invocation_id"`
			Class string `json:"error_class"`
			Code  string `json:"error_code"`
		} `json:"toolhub/invocation"`
	} `json:"_meta"`
}

type batchedCall struct {
	ID         string
	Invocation string `json:"invocation_id"`
	Status     string
	Class      string `json:"error_class"`
	Abort      string `json:"abort_reason"`
	Omitted    int    `json:"omitted_bytes"`
	Result     json.RawMessage
}

// batch calls tool_batch.
func (w *wire) batch(arguments string) (b batched) {
	w.t.Helper()
	mustDecode(w.t, w.result("tool_batch", arguments, ""), &b)
	return b
}
