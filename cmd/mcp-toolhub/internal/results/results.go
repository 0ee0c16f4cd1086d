// Package results reads stored results and artifacts for clients: whole, as a resource, and in
// parts. For a caller that did not get a result it does not exist.
package results

import (
	"errors"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
)

// ErrUnknown is returned where nothing is stored under an id, and to callers that may not read what is.
var ErrUnknown = errors.New("no result is stored under this id")

// Reader reads the results of a store. It is safe for concurrent use.
type Reader struct {
	Store *payload.Store
	All   func(caller tool.Actor) bool // whether a caller may read the results of all callers

	Memory *budget.Share // for large results while they are read; nil: without bounds
}

// Read calls use with the bytes of the result and what is known of it. free, which is never nil,
// ends the use of what use has made of them. The error is ErrUnknown, a *tool.Failure, or that of
// use.
func (r Reader) Read(caller tool.Actor, id tool.ResultID, use func(e payload.Entry, native []byte) error) (free func(),
	err error) {
	free = func() {}
	if !id.IsResult() && caller.Door != "cli" {
		return free, ErrUnknown // an input may hold arguments that no caller may see
	}
	e, err := r.Store.Entry(id)
	if err == nil && !r.may(caller, e) || errors.Is(err, payload.ErrUnknown) {
		return free, ErrUnknown
	}
	if err != nil {
		return free, failed(err)
	}
	if r.Memory != nil {
		room := r.Memory.Room(nil)
		if err := room.Take(min(copies*e.Size, r.Memory.Largest())); err != nil {
			return free, failed(err)
		}
		free = room.Free // it comes from the disk: nobody waits for a server
	}
	used := false
	err = r.Store.Read(e, func(native []byte) error {
		used = true
		return use(e, native)
	})
	if err != nil {
		free()
	}
	if used {
		return free, err
	}
	return free, failed(err)
}

// copies is what it takes to read a result: its bytes, and what is made of them.
const copies = 2

// may reports whether the caller may read a result: it is the one that got it, the person whose
// files they are, at the command line, or has the right to read all.
func (r Reader) may(caller tool.Actor, e payload.Entry) bool {
	return caller.Ref() == e.Actor || caller.Door == "cli" || r.All(caller)
}

// failed says what is wrong with a result that the caller may read.
func failed(err error) error {
	var gone *payload.ExpiredError
	var corrupt *payload.CorruptError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &gone):
		return &tool.Failure{Class: tool.ClassExecutionFailed, Code: "result_expired", Cause: err,
			Message: "this result is no longer stored: " + gone.Entry.Reason + "; call " + string(gone.Entry.Tool) +
				" again if you need it"}
	case errors.As(err, &corrupt):
		return &tool.Failure{Class: tool.ClassExecutionFailed, Code: "result_corrupted", Cause: err,
			Message: "this result was changed since it was stored, so it cannot be read: call its tool again if " +
				"that is safe"}
	}
	return &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: "result_unavailable", Cause: err,
		Message: "this result cannot be read now: try again later"}
}
