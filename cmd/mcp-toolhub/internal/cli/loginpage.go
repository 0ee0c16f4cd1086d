package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/login"
)

// errNoHub says that no hub answers at an address.
var errNoHub = errors.New("no hub answers there")

// atHub signs in on the page of a running hub: browsers come back to that hub, wherever it is. It
// returns when somebody has signed in.
func (c *loginCmd) atHub(ctx context.Context, hubURL, id string) error {
	u, err := parseURL(hubURL)
	if err != nil {
		return err
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + downstream.BeginPath + url.PathEscape(id)
	ctx, cancel := context.WithTimeoutCause(ctx, loginTime, fmt.Errorf("it took more than %s", loginTime))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), nil)
	if err != nil {
		return fmt.Errorf("ask the hub: %w", err)
	}
	if token, ok := c.std.getenv(tokenVariable); ok {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("ask the hub at %s: %w: %w", u.Host, errNoHub, err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(io.LimitReader(resp.Body, 64<<10))
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("the hub at %s wants a token: set $%s", u.Host, tokenVariable)
	case resp.StatusCode == http.StatusNotFound:
		return fmt.Errorf("the hub at %s has no server %q that somebody signs in to", u.Host, id)
	case resp.StatusCode == http.StatusBadGateway || resp.StatusCode == http.StatusServiceUnavailable:
		return fmt.Errorf("ask the hub at %s: %w (status %d)", u.Host, errNoHub, resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("the hub at %s answered with status %d", u.Host, resp.StatusCode)
	}
	var begun login.Begun
	if !readLineOf(lines, &begun) || begun.Address == "" {
		return fmt.Errorf("what the hub at %s answered is no address of a page", u.Host)
	}
	c.visit(begun.Address, begun.Code)
	var ended login.Ended
	switch {
	case !readLineOf(lines, &ended) && ctx.Err() != nil:
		return exitInterrupted.errorf("nobody has signed in: %w", context.Cause(ctx))
	case !ended.SignedIn && ended.Problem == "":
		return fmt.Errorf("the hub at %s has gone away before anybody signed in", u.Host)
	case !ended.SignedIn:
		return fmt.Errorf("nobody has signed in: %s", printable(ended.Problem))
	}
	c.std.say("%s: signed in at the hub", id)
	return nil
}

// readLineOf reads a line of JSON into v.
func readLineOf(lines *bufio.Scanner, v any) bool {
	return lines.Scan() && json.Unmarshal(lines.Bytes(), v) == nil
}
