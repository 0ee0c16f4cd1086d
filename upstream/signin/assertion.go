package signin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

// Types of grants and tokens, as requests name them.
const (
	grantAssertion = "urn:ietf:params:oauth:grant-type:jwt-bearer"     // RFC 7523
	grantExchange  = "urn:ietf:params:oauth:grant-type:token-exchange" // RFC 8693
	typeIDToken    = "urn:ietf:params:oauth:token-type:id_token"
	// of a grant that an identity provider makes for another authorization server
	typeIDJAG = "urn:ietf:params:oauth:token-type:id-jag"
)

const maxAssertion = 64 << 10 // bytes

// readAssertion reads the token that stands for the hub, or for its user. It is read for each use:
// whoever puts it there renews it.
func readAssertion(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxAssertion+1))
	text := strings.TrimSpace(string(raw))
	switch {
	case err != nil:
		return "", err
	case text == "":
		return "", fmt.Errorf("%s is empty: whatever renews the token there has to run first", path)
	case len(raw) > maxAssertion:
		return "", fmt.Errorf("%s is larger than %d KiB: it is no token", path, maxAssertion>>10)
	}
	return text, nil
}

// exchange has the company's identity provider make a grant for the authorization server of t out
// of the token that it made for the user.
func exchange(ctx context.Context, o settings.OAuth, t terms, token, scope string) (string, error) {
	client := newClient(true) // the entry names the identity provider, wherever it is
	idp, err := issuerAt(ctx, client, o.Provider.Issuer, false)
	if err == nil {
		err = checkAddress(idp.TokenEndpoint)
	}
	if err != nil {
		return "", fmt.Errorf("identity provider: %w", err)
	}
	own := settings.OAuth{ClientID: o.Provider.ClientID, ClientSecret: o.Provider.ClientSecret}
	a := &asker{http: client, issuer: idp.Issuer, tokenURL: idp.TokenEndpoint, resource: t.resource,
		client: preregistered(own, idp.TokenEndpointAuthMethodsSupported)}
	made, err := a.made(ctx, map[string]string{"grant_type": grantExchange, "requested_token_type": typeIDJAG,
		"audience":      t.Issuer,
		"subject_token": token, "subject_token_type": typeIDToken, "scope": scope})
	if err != nil {
		return "", err
	}
	if kind, _ := made.Extra("issued_token_type").(string); kind != typeIDJAG {
		return "", errors.New("the identity provider made a token of another type, " + shownText(kind))
	}
	return made.AccessToken, nil
}
