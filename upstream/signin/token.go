package signin

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

// How a client proves at the token endpoint who it is.
const (
	methodNone   = "none"
	methodBasic  = "client_secret_basic"
	methodPost   = "client_secret_post"
	methodSigned = "private_key_jwt"
)

func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// preregistered returns the client that the entry of a server names. offered are the methods of the
// authorization server.
func preregistered(o settings.OAuth, offered []string) Client {
	c := Client{ID: o.ClientID, Secret: o.ClientSecret, Method: methodNone}
	switch {
	case o.ClientKey != "":
		c.Method = methodSigned
	case o.ClientSecret != "" && len(offered) > 0 && !slices.Contains(offered, methodBasic) &&
		slices.Contains(offered, methodPost):
		c.Method = methodPost
	case o.ClientSecret != "":
		c.Method = methodBasic
	}
	return c
}

// asker makes requests to a token endpoint.
type asker struct {
	http     *http.Client
	o        settings.OAuth
	issuer   string
	tokenURL string
	resource string
	client   Client
	prover   *prover // of the key that tokens are to be bound to; nil for none
	// how long the token before lasts; 0 where there was none, negative where it did not say when
	// it ends
	lasts time.Duration
}

// params returns what every request carries: for which resource it is, and a signature where the client signs.
func (a *asker) params() (url.Values, error) {
	v := make(url.Values)
	if a.resource != "" {
		v.Set("resource", a.resource)
	}
	if a.client.Method != methodSigned {
		return v, nil
	}
	signed, err := a.sign()
	if err != nil {
		return nil, err
	}
	v.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
	v.Set("client_assertion", signed)
	return v, nil
}

// sign makes the client's assertion (RFC 7523). Its only audience is the issuer, so that nobody else can use it.
func (a *asker) sign() (string, error) {
	block, _ := pem.Decode([]byte(a.o.ClientKey))
	if block == nil {
		return "", errors.New("oauth.client_key is no PEM: give the private key that is registered with the client")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		if key, err = x509.ParseECPrivateKey(block.Bytes); err != nil {
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		}
	}
	signer, ok := key.(crypto.Signer)
	if err != nil || !ok {
		return "", errors.New("oauth.client_key is no private key that signs: use an EC (P-256), RSA or Ed25519 key")
	}
	var method jwt.SigningMethod = jwt.SigningMethodRS256
	switch signer.Public().(type) {
	case *ecdsa.PublicKey:
		method = jwt.SigningMethodES256
	case ed25519.PublicKey:
		method = jwt.SigningMethodEdDSA
	}
	now := time.Now()
	return jwt.NewWithClaims(method, jwt.RegisteredClaims{Issuer: a.client.ID, Subject: a.client.ID,
		Audience: jwt.ClaimStrings{a.issuer},
		ID:       rand.Text(), IssuedAt: jwt.NewNumericDate(now),
		ExpiresAt: jwt.NewNumericDate(now.Add(time.Minute))}).SignedString(key)
}

// style says where the client's secret stands.
func (a *asker) style() oauth2.AuthStyle {
	if a.client.Method == methodBasic {
		return oauth2.AuthStyleInHeader
	}
	return oauth2.AuthStyleInParams
}

// token asks for an access token with a grant of any type: grant is that type and what belongs to it.
func (a *asker) token(ctx context.Context, grant map[string]string) (*oauth2.Token, error) {
	t, err := a.made(ctx, grant)
	if err != nil {
		return nil, err
	}
	return a.usable(t)
}

// sender returns what sends requests for tokens.
func (a *asker) sender() *http.Client {
	c := *a.http
	if a.prover != nil {
		c.Transport = proving{a.prover, a.tokenURL, c.Transport}
	}
	c.Transport = tokenReader{c.Transport}
	return &c
}

// made asks for a token of any type.
func (a *asker) made(ctx context.Context, grant map[string]string) (*oauth2.Token, error) {
	params, err := a.params()
	if err != nil {
		return nil, err
	}
	for name, value := range grant {
		if value != "" {
			params.Set(name, value)
		}
	}
	// This sends any type of grant. oauth2.Config would refresh without a resource.
	c := clientcredentials.Config{ClientID: a.client.ID, ClientSecret: a.client.Secret, TokenURL: a.tokenURL,
		AuthStyle:      a.style(),
		EndpointParams: params}
	t, err := c.Token(context.WithValue(ctx, oauth2.HTTPClient, a.sender()))
	return t, shown(err)
}

// usable returns t, if it is a token that the hub can use. One of a type that nobody knows, such as
// Slack's "user", is sent as a Bearer token.
func (a *asker) usable(t *oauth2.Token) (*oauth2.Token, error) {
	if a.prover == nil && strings.EqualFold(t.Type(), typeDPoP) {
		return nil, errors.New("the authorization server made a token that is bound to a key (DPoP), and the hub asked " +
			"for none")
	}
	if strings.ContainsFunc(t.AccessToken, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the authorization server made a token that holds characters which no header can carry")
	}
	if t.Expiry.IsZero() {
		t.Expiry = expiryOf(t.AccessToken)
	}
	if t.Expiry.IsZero() && a.lasts > 0 {
		t.Expiry = time.Now().Add(a.lasts)
	}
	if !t.Expiry.IsZero() && !t.Expiry.After(time.Now()) {
		return nil, errors.New("the authorization server made a token that has ended already")
	}
	return t, nil
}

// expiryOf returns when a token ends that is a JWT and says so; zero otherwise. Nothing is verified:
// the authorization server itself has sent the token.
func expiryOf(token string) time.Time {
	var claims jwt.RegisteredClaims
	if _, _, err := jwt.NewParser().ParseUnverified(token, &claims); err != nil || claims.ExpiresAt == nil {
		return time.Time{}
	}
	return claims.ExpiresAt.Time
}

// revoke tells the authorization server that a token is not used any more (RFC 7009).
func (a *asker) revoke(ctx context.Context, address, token string) error {
	v, err := a.params()
	if err != nil {
		return err
	}
	v.Set("token", token)
	if a.client.Method != methodBasic {
		v.Set("client_id", a.client.ID)
	}
	if a.client.Method == methodPost {
		v.Set("client_secret", a.client.Secret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(v.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if a.client.Method == methodBasic {
		req.SetBasicAuth(url.QueryEscape(a.client.ID), url.QueryEscape(a.client.Secret))
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return shown(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered with HTTP status %d", hostOf(address), resp.StatusCode)
	}
	return nil
}

// take puts what came with a token into a grant.
func (g *Grant) take(t *oauth2.Token, asked []string) {
	g.Access, g.Issued, g.Expires = t.AccessToken, time.Now(), t.Expiry
	g.Bound = strings.EqualFold(t.Type(), typeDPoP)
	if t.RefreshToken != "" {
		g.Refresh = t.RefreshToken
	}
	if asked != nil {
		g.Asked = asked
	}
	if scope, ok := t.Extra("scope").(string); ok && scope != "" {
		g.Scopes = scopesIn(scope)
	} else if asked != nil {
		g.Scopes = asked // "OPTIONAL, if identical to the scope requested by the client"
	}
}
