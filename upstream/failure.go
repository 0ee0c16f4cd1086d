package upstream

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// fault is why a server is not ready, in words for a person. Neither part holds a secret.
type fault struct {
	what  string        // what happened
	hint  string        // what to do about it; may be empty
	auth  bool          // the server refused the credentials: trying again is pointless until something changes
	idle  bool          // nothing is wrong: the server was not needed for a while
	lost  bool          // the server has forgotten the session: a new one will do
	pause time.Duration // the server asked not to be tried again before
	cause error
}

func (f *fault) Error() string { return f.what }

func (f *fault) Unwrap() error { return f.cause }

// installHint says where a well-known launcher comes from.
func installHint(command string) string {
	switch command {
	case "npx", "npm", "node":
		return "install Node.js"
	case "uvx", "uv":
		return "install uv"
	case "python", "python3", "pip", "pipx":
		return "install Python"
	case "docker", "podman", "bun", "bunx", "deno", "go":
		return "install " + strings.TrimSuffix(command, "x")
	}
	return "install it"
}

// processFault explains why a child could not be started.
func processFault(cfg ServerConfig, err error) *fault {
	switch {
	case errors.Is(err, errNoCommand):
		return &fault{what: "no command given", hint: "set command in the server's entry", cause: err}
	case errors.Is(err, exec.ErrNotFound):
		return &fault{
			what:  fmt.Sprintf("command %q was not found in PATH", cfg.Command),
			hint:  installHint(cfg.Command) + " or give the full path",
			cause: err,
		}
	case errors.Is(err, fs.ErrPermission):
		return &fault{
			what:  fmt.Sprintf("command %q may not be run", cfg.Command),
			hint:  "make the file executable, or check who may read the working directory",
			cause: err,
		}
	case errors.Is(err, fs.ErrNotExist) && cfg.Dir != "":
		return &fault{
			what:  fmt.Sprintf("command %q or working directory %q does not exist", cfg.Command, cfg.Dir),
			hint:  "check command and cwd in the server's entry",
			cause: err,
		}
	case errors.Is(err, fs.ErrNotExist):
		return &fault{
			what:  fmt.Sprintf("command %q does not exist", cfg.Command),
			hint:  "check command in the server's entry",
			cause: err,
		}
	}
	f := &fault{what: fmt.Sprintf("command %q could not be started", cfg.Command), hint: "run the command by hand to see why", cause: err}
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		f.what += ": " + errno.Error()
	}
	if errors.Is(err, syscall.E2BIG) {
		f.hint = "shorten args and env of the server's entry: a value may have 128 KiB on Linux"
	}
	return f
}

// statusFault explains an HTTP status of 300 or more that ended an attempt to connect.
func statusFault(cfg ServerConfig, status int, pause time.Duration, cause error) *fault {
	where := safeURL(cfg.URL)
	f := &fault{pause: pause, cause: cause}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		f.auth = true
		f.what = fmt.Sprintf("%s refused the credentials (HTTP %d)", where, status)
		f.hint = "set or renew the credentials in headers of the server's entry"
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		f.what = fmt.Sprintf("%s is no MCP endpoint (HTTP %d)", where, status)
		f.hint = "check url; a server of the older HTTP+SSE transport needs type: sse"
	case status == http.StatusTooManyRequests:
		f.what = fmt.Sprintf("%s limits requests (HTTP %d)", where, status)
		f.hint = "wait, or ask the server's operator for a higher limit"
	case status >= 500:
		f.what = fmt.Sprintf("%s failed (HTTP %d)", where, status)
		f.hint = "see the server's own log"
	default:
		f.what = fmt.Sprintf("%s refused the request (HTTP %d)", where, status)
		f.hint = "check url and headers of the server's entry"
	}
	return f
}

// connectFault explains an error of connecting over HTTP.
func connectFault(cfg ServerConfig, err error, r *redactor) *fault {
	var redirect *redirectError
	if errors.As(err, &redirect) {
		return &fault{
			what:  fmt.Sprintf("%s redirects to %s", safeURL(cfg.URL), redirect.target),
			hint:  "if that is where the server lives, set it as url",
			cause: err,
		}
	}
	var status *statusError
	if errors.As(err, &status) {
		return statusFault(cfg, status.status, 0, err)
	}
	return &fault{
		what:  fmt.Sprintf("connect to %s: %s", safeURL(cfg.URL), r.text(plainError(err))),
		hint:  "check that the server runs and that url is right",
		cause: err,
	}
}

// plainError is the text of err without the URL that net/http puts before it.
func plainError(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err.Error()
	}
	return err.Error()
}

// statusFailure is the answer of a call that got an HTTP status instead of a response.
func statusFailure(status int, retry time.Duration) *tool.Failure {
	f := &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: fmt.Sprintf("http_%d", status), RetryAfter: retry}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		f.Class = tool.ClassCredentialMissing
		f.Message = fmt.Sprintf("the server refused the hub's credentials for this call (HTTP %d): "+
			"ask the hub's operator to set or renew them", status)
	case status == http.StatusTooManyRequests:
		f.Class = tool.ClassRateLimited
		f.Message = "the server limits requests (HTTP 429): wait before calling again"
		if retry > 0 {
			f.Message = fmt.Sprintf("the server limits requests (HTTP 429): call again in %s", retry)
		}
	case status == http.StatusRequestEntityTooLarge:
		f.Class = tool.ClassInvalidArguments
		f.Message = "the server takes no request of this size (HTTP 413): send less in one call"
	case status >= 500:
		f.OutcomeUnknown = true
		f.Message = fmt.Sprintf("the server failed without an answer (HTTP %d), so the call may have taken effect: "+
			"check before calling again", status)
	default:
		f.Message = fmt.Sprintf("the server refused the request (HTTP %d): ask the hub's operator to check its url", status)
	}
	return f
}
