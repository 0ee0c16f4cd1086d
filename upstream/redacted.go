package upstream

import (
	"errors"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// maxKeptBody bounds the bytes that records keep of a refusal.
const maxKeptBody = 4 << 10

// maxWords bounds what people and models are shown of a refusal that is no JSON-RPC.
const maxWords = 200

// words returns what the server says in a refusal, to follow a message; "" where that is a page, or nothing.
func (e *entry) words(refusal *tool.HTTPError) string {
	says := e.redact.Beginning(refusal.Body, maxWords)
	if says == "" || strings.Contains(refusal.Media, "html") || strings.HasPrefix(says, "<") {
		return ""
	}
	return ". The server says: " + says
}

// redacted returns err with a text that may be logged and shown. The members of a server's own error
// object stay as they are, for the client.
func redacted(r *secret.Redactor, err error) error {
	var rpc *tool.RPCError
	var refused *tool.HTTPError
	var f *tool.Failure
	switch {
	case errors.As(err, &f):
		safe := *f
		safe.Message = r.Beginning(f.Message, secret.MaxMessage)
		if f.Cause != nil {
			safe.Cause = &shownError{text: r.Text(f.Cause.Error()), cause: redacted(r, f.Cause)}
		}
		return &safe
	case errors.As(err, &rpc):
		safe := *rpc
		safe.Shown, safe.ShownRaw = r.Text(rpc.Message), r.JSON(rpc.Raw)
		return &safe
	case errors.As(err, &refused):
		return &tool.HTTPError{Status: refused.Status, Media: r.Text(refused.Media),
			Body: r.Beginning(refused.Body, maxKeptBody)}
	}
	return err
}

// shownError is an error whose text was redacted.
type shownError struct {
	text  string
	cause error
}

func (e *shownError) Error() string { return e.text }

func (e *shownError) Unwrap() error { return e.cause }
