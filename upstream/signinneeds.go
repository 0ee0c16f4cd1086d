package upstream

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
)

// signInNeeds tells requests over HTTP that fail for want of a sign-in from others.
type signInNeeds struct {
	*session
	server *transport.HTTP
}

// ofError returns the failure of a request that was not sent for want of a token, or that ended
// with a *fault.StatusError for which a person has to sign in; nil for others.
func (n *signInNeeds) ofError(err error) *tool.Failure {
	if needed := (*signin.NeededError)(nil); errors.As(err, &needed) {
		f := fault.NeedsSignIn(n.cfg, needed.Why, err)
		n.end(f)
		return signInFailure(f.What, f.Hint, err)
	}
	if token := (*fault.TokenError)(nil); errors.As(err, &token) {
		f := fault.OfToken(n.cfg, token.Err, n.cfg.Entry().Redactor())
		message := "the call was not sent: " + f.What
		if f.Hint != "" { // otherwise What says it
			message += mendIt + f.Hint
		}
		return &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: "no_token", Cause: err, Message: message}
	}
	if status := (*fault.StatusError)(nil); errors.As(err, &status) {
		return n.ofStatus(status.Status, status.Header, err)
	}
	return nil
}

// ofStatus returns the failure of a request that the server has refused, if a person has to sign
// in, or to sign in for more scopes; otherwise nil. Whether the session goes on is for the caller
// to say.
func (n *signInNeeds) ofStatus(status int, h http.Header, cause error) *tool.Failure {
	if !n.cfg.SignsIn() {
		return nil
	}
	if status == http.StatusUnauthorized {
		if n.server.Tokens != nil {
			n.server.Tokens.Challenged(h)
		}
		f := fault.OfStatus(n.cfg, status, nil)
		return signInFailure(f.What, f.Hint, cause)
	}
	if scopes := signin.MissingScopes(h); status == http.StatusForbidden && scopes != "" {
		what := fmt.Sprintf("the server wants further rights for this call (%s)",
			hidden.Line(hidden.Cut(scopes, secret.MaxText)))
		return signInFailure(what, fault.SignInHint(n.cfg), cause)
	}
	return nil
}

// codeNeedsSignIn is the error_code of a request for which a person has to sign in; mendIt stands
// in its message before what to do.
const (
	codeNeedsSignIn = "needs_sign_in"
	mendIt          = "; to mend it: "
)

// signInFailure is the failure of a call for which a person has to sign in.
func signInFailure(what, hint string, cause error) *tool.Failure {
	return &tool.Failure{Class: tool.ClassSetupRequired, Code: codeNeedsSignIn, Message: what + mendIt + hint,
		Cause: cause}
}
