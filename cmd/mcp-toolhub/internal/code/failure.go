package code

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Error codes of this toolset, beside the class of each failure.
const (
	codeFileNotFound   = "file_not_found"
	codeAccessDenied   = "access_denied"
	codeIsDirectory    = "is_a_directory"
	codeNotDirectory   = "not_a_directory"
	codeNotRegular     = "not_a_regular_file"
	codeBinaryFile     = "binary_file"
	codeSymlinkLoop    = "symlink_loop"
	codeStartLine      = "start_line_out_of_range"
	codeInvalidQuery   = "invalid_query"
	codeInvalidGlob    = "invalid_glob"
	codePathChanged    = "path_changed"
	codeReadFailed     = "read_failed"
	codeNetworkPath    = "network_path"
	codeHomeNotDefined = "home_not_defined"
)

// What open found out, for callers that branch.
var (
	errSensitive    = errors.New("sensitive path")
	errNever        = errors.New("path that is never read")
	errMoved        = errors.New("the path leads elsewhere than when the call was permitted")
	errNotDirectory = errors.New("not a directory")
	errNotRegular   = errors.New("neither a regular file nor a directory")
	errChanged      = errors.New("the path changed while it was opened")
)

func failure(class tool.ErrorClass, code, format string, args ...any) *tool.Failure {
	return &tool.Failure{Class: class, Code: code, Message: fmt.Sprintf(format, args...)}
}

func invalid(code, format string, args ...any) *tool.Failure {
	return failure(tool.ClassInvalidArguments, code, format, args...)
}

// asFailure returns err as a failure: canceled or timeout where ctx ended the call.
func asFailure(ctx context.Context, err error) *tool.Failure {
	var own *tool.Failure
	isOwn := errors.As(err, &own)
	switch cause := ctx.Err(); {
	case isOwn && (own.Class == tool.ClassTimeout || own.Class == tool.ClassCanceled):
		return own // says more
	case errors.Is(cause, context.DeadlineExceeded):
		return &tool.Failure{Class: tool.ClassTimeout, Cause: err,
			Message: "the call took longer than it may: narrow it to a smaller path, or read fewer lines"}
	case cause != nil:
		return &tool.Failure{Class: tool.ClassCanceled, Cause: err,
			Message: "the call was canceled: call again if it is still needed"}
	case isOwn:
		return own
	}
	return &tool.Failure{Class: tool.ClassExecutionFailed, Code: codeReadFailed, Cause: err,
		Message: "reading failed: try again, or read another path"}
}

// openFailure says why path, as the caller wrote it, could not be opened.
func openFailure(path string, err error) *tool.Failure {
	f := &tool.Failure{Class: tool.ClassExecutionFailed, Cause: err}
	message := ""
	switch {
	case errors.Is(err, errSensitive):
		f.Class = tool.ClassPermissionDenied
		message = "%q is a sensitive path (keys, credentials or secrets), which is never read or listed without " +
			"permission, and nobody is asked for it here: go on without it, or ask the person for what is needed of it"
	case errors.Is(err, errNever):
		f.Class, f.Code = tool.ClassPermissionDenied, codeProtected
		message = "%q is never read by this tool, whoever allows it: it belongs to the system, to the hub itself " +
			"or to what " +
			"its operator protects; go on without it"
	case errors.Is(err, errMoved):
		f.Class, f.Code = tool.ClassPermissionDenied, codePathChanged
		message = "%q leads elsewhere than when the call was permitted, so that nothing was read: call again"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		f.Code, message = codeFileNotFound, "there is no %q: look for the right path with list_dir or search"
	case errors.Is(err, fs.ErrPermission):
		f.Code = codeAccessDenied
		message = "the system denies access to %q: choose another path, or ask the person to change its mode"
	case errors.Is(err, errNotDirectory):
		f.Class, f.Code, message = tool.ClassInvalidArguments, codeNotDirectory, "%q is a file: read it with read_file"
	case errors.Is(err, errNotRegular):
		f.Class, f.Code = tool.ClassInvalidArguments, codeNotRegular
		message = "%q is a device, pipe or socket, which is never read: choose a regular file or a directory"
	case errors.Is(err, errChanged):
		f.Code, message = codePathChanged, "%q changed while it was opened: call again"
	case errors.Is(err, syscall.ELOOP):
		f.Code, message = codeSymlinkLoop, "%q goes round in symbolic links: choose another path"
	default:
		f.Code, message = codeReadFailed, "%q could not be opened: check the path with list_dir"
	}
	f.Message = fmt.Sprintf(message, path)
	return f
}
