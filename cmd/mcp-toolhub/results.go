package main

import (
	"bytes"
	"errors"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/results"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
)

// resultReader returns what reads stored results, with the rights of the settings in force.
func (h *hub) resultReader() results.Reader {
	return results.Reader{Store: h.results, All: h.settings().Downstream.Auth.ReadsResults}
}

// storedResult implements downstream.StoredResults.
func (h *hub) storedResult(caller tool.Actor, id tool.ResultID) (text []byte, mediaType string, err error) {
	err = h.resultReader().Read(caller, id, func(e payload.Entry, native []byte) error {
		text, mediaType = bytes.Clone(native), e.MediaType
		return nil
	})
	if errors.Is(err, results.ErrUnknown) {
		err = downstream.ErrNoResult
	}
	return text, mediaType, err
}
