// Package fault says in words for people why a server is not ready, or why a call got no answer,
// and what to do about it.
package fault

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
)

// Fault says why a server is not ready, in words for a person. No field holds a secret.
type Fault struct {
	What  string        // what happened
	Hint  string        // what to do about it; may be empty
	Auth  bool          // the server refused the credentials: a retry is useless until they change
	Idle  bool          // nothing is wrong: no call has needed the server for a while
	Lost  bool          // the server has forgotten the session: a new session helps
	Pause time.Duration // the server asked for this pause before the next attempt
	Cause error
}

func (f *Fault) Error() string { return f.What }

func (f *Fault) Unwrap() error { return f.Cause }

// AnswerError reports an answer that the hub does not take: a redirect, an encoding that it has not asked for, or
// something else than JSON, such as a web page.
type AnswerError struct {
	Redirects  bool
	What, Hint string
}

func (e *AnswerError) Error() string { return e.What + ": " + e.Hint }

// TokenError reports that a request was not sent, because there was no token for it.
type TokenError struct{ Err error }

func (e *TokenError) Error() string { return e.Err.Error() }

func (e *TokenError) Unwrap() error { return e.Err }

// StatusError reports an HTTP status outside of 200 to 299.
type StatusError struct {
	Status int
	Header http.Header // of the answer; may be nil
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("HTTP status %d %s", e.Status, http.StatusText(e.Status))
}

// OfStatus explains an HTTP status of 300 or more in answer to an attempt to connect.
func OfStatus(cfg settings.Server, status int, cause error) *Fault {
	where := secret.URL(cfg.URL)
	f := &Fault{Cause: cause}
	switch {
	case status == http.StatusUnauthorized && cfg.SignsIn():
		return NeedsSignIn(cfg, fmt.Sprintf("%s asks for a sign-in (HTTP 401)", where), cause)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		f.Auth = true
		f.What = fmt.Sprintf("%s refused the credentials (HTTP %d)", where, status)
		f.Hint = "set or renew the credentials in headers of the server's entry"
		if cfg.SignsIn() { // perhaps with too few rights
			f.Hint = SignInHint(cfg)
		}
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		f.What = fmt.Sprintf("%s is no MCP endpoint (HTTP %d)", where, status)
		f.Hint = "check url; a server of the older HTTP+SSE transport needs type: sse"
	case status == http.StatusTooManyRequests:
		f.What = fmt.Sprintf("%s limits requests (HTTP %d)", where, status)
		f.Hint = "wait, or ask the server's operator for a higher limit"
	case status >= 500:
		f.What = fmt.Sprintf("%s failed (HTTP %d)", where, status)
		f.Hint = "see the server's own log"
	default:
		f.What = fmt.Sprintf("%s refused the request (HTTP %d)", where, status)
		f.Hint = "check url and headers of the server's entry"
	}
	return f
}

// NeedsSignIn says that a person has to sign in to the server. what happened is fit to be shown.
func NeedsSignIn(cfg settings.Server, what string, cause error) *Fault {
	return &Fault{What: what, Hint: SignInHint(cfg), Auth: true, Cause: cause}
}

// SignInHint says how to sign in to a server.
func SignInHint(cfg settings.Server) string {
	if cfg.OAuth.Machine {
		return "check oauth of the server's entry"
	}
	if cfg.OAuth.PerCaller {
		return "run " + LoginCommand(cfg)
	}
	return "run " + LoginCommand(cfg) + " (or give a token in headers of the server's entry)"
}

// LoginCommand is the command by which a person signs in to a server.
func LoginCommand(cfg settings.Server) string {
	command := cmp.Or(cfg.LoginCommand, "mcp-toolhub login "+cfg.ID)
	if cfg.OAuth.PerCaller && cfg.Person != "" && cfg.Person != tool.Local {
		command += " --as " + cfg.Person
	}
	return command
}

// OfToken explains why there is no token for a server.
func OfToken(cfg settings.Server, err error, r *secret.Redactor) *Fault {
	var needed *signin.NeededError
	if errors.As(err, &needed) {
		return NeedsSignIn(cfg, r.Text(needed.Why), err)
	}
	if store := (*signin.StoreError)(nil); errors.As(err, &store) {
		return &Fault{What: r.Text(err.Error()), Cause: err}
	}
	hint := "check that the authorization server can be reached; if that does not help, " + SignInHint(cfg)
	if cfg.OAuth.Machine {
		hint = SignInHint(cfg) + ", and that the authorization server can be reached"
	}
	return &Fault{What: "get a token: " + r.Text(err.Error()), Hint: hint, Cause: err}
}

// OfConnect explains why an attempt to connect over HTTP failed.
func OfConnect(cfg settings.Server, err error, r *secret.Redactor) *Fault {
	if answer := (*AnswerError)(nil); errors.As(err, &answer) {
		return &Fault{What: secret.URL(cfg.URL) + " " + answer.What, Hint: answer.Hint, Cause: err}
	}
	var status *StatusError
	if errors.As(err, &status) {
		return OfStatus(cfg, status.Status, err)
	}
	return &Fault{
		What:  fmt.Sprintf("connect to %s: %s", secret.URL(cfg.URL), r.Text(Plain(err))),
		Hint:  "check that the server runs and that url is right",
		Cause: err,
	}
}

// Plain returns the text of err without the URL that net/http puts before it.
func Plain(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err.Error()
	}
	return err.Error()
}

// StatusFailure explains to the caller of a tool that its call got an HTTP status instead of a response. retry is the
// pause that the server asked for, or 0.
func StatusFailure(status int, retry time.Duration) *tool.Failure {
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
		f.Message = fmt.Sprintf("the server refused the request (HTTP %d): ask the hub's operator to check its url",
			status)
	}
	return f
}
