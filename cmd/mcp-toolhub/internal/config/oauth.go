package config

import (
	"fmt"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
)

// oauth is how a person wants the hub to sign in to a server.
type oauth struct {
	upstream.OAuth                                     // what needs no place, and nothing else of the key
	clientID, clientSecret, clientKey, grant, identity shape.Located[string]
	assertionFile                                      shape.Located[string]
	provider                                           shape.Located[upstream.IdentityProvider]
	pkce                                               string
	port                                               int
}

// oauthShape is the key oauth. Clients write other things there, which are left out with a warning.
type oauthShape struct{ shape.Object[oauth] }

func oauthOf() oauthShape {
	return oauthShape{shape.Object[oauth]{Fields: oauthKeys, Retired: gone("remove it: "+
		"a token that does not say when it ends is used until the server refuses it", "expiry"),
		Lenient: func(key string) bool {
			return slices.Contains([]string{"enabled", "authorizationUrl", "tokenUrl", "audiences",
				"tokenParamName", "registrationUrl", "authServerMetadataUrl", "xaa"}, key)
		}}}
}

// Read implements shape.Shape.
func (s oauthShape) Read(r *shape.Reader, n *textfile.Node) (oauth, bool) {
	if n.Kind == textfile.Bool { // OpenCode's oauth: false
		r.Warn(n.Position, "ignored",
			"the hub signs in where a server asks for that, and somebody has run mcp-toolhub login")
		return oauth{}, true
	}
	return s.Object.Read(r, n)
}

// Schema implements shape.Shape.
func (s oauthShape) Schema() shape.Schema {
	schema := s.Object.Schema()
	schema["type"] = []string{"object", "boolean"}
	return schema
}

// perCaller is the value of identity that gives each caller a sign-in of their own.
const perCaller = "caller"

func oauthKeys(o *oauth) []shape.Field {
	secret := shape.Text{Expand: true}
	return []shape.Field{
		shape.KeyAt("client_id",
			"The client that is registered for the hub, or the https address of its Client ID Metadata Document. "+
				"Default: the hub registers itself.", secret, &o.clientID).Or("clientId"),
		shape.KeyAt("client_secret", "Its secret, by reference: ${env:NAME} or ${file:path}.", secret,
			&o.clientSecret).Or("clientSecret"),
		shape.KeyAt("client_key", "The private key that it signs with in place of a secret, as PEM: ${file:path}.",
			secret, &o.clientKey),
		shape.KeyAt("grant",
			"authorization_code (default): a person signs in with mcp-toolhub login. client_credentials: the hub "+
				"signs in as itself, with client_id and client_secret or client_key. jwt_bearer: likewise, with "+
				"the token in assertion_file.",
			shape.OneOf("authorization_code", "client_credentials", "jwt_bearer"), &o.grant),
		shape.KeyAt("assertion_file",
			"The file with the token that stands for the hub, such as one of Kubernetes, read at each use.",
			shape.Text{Expand: true}, &o.assertionFile),
		shape.KeyAt("identity_provider",
			"Your company's identity provider. assertion_file then holds its ID token, which it exchanges for one "+
				"that the server takes.",
			shape.Object[upstream.IdentityProvider]{Fields: providerKeys}, &o.provider),
		shape.KeyAt("identity",
			"hub (default): all callers share one sign-in. caller: each holder of a token signs in with "+
				"mcp-toolhub login --as NAME, and has a connection of their own.",
			shape.OneOf("hub", "caller"),
			&o.identity),
		shape.Key("scopes", "Asked for in place of those that the server names.", shape.List[string]{Of: plainText},
			&o.Scopes),
		shape.Key("issuer", "The authorization server, where the server names none, or several.",
			shape.Text{Check: webURL}, &o.Issuer),
		shape.Key("resource",
			"The value of the parameter resource instead of the server's own. omit leaves it out, for Entra.",
			plainText, &o.Resource),
		shape.Key("pkce",
			"assume: the authorization server takes PKCE with S256 without saying so, like Entra's.",
			shape.OneOf("assume"), &o.pkce),
		shape.Key("callback_port",
			"The port on 127.0.0.1 that the browser comes back to, at /callback (default any).",
			shape.Integer[int]{Min: 1, Max: 65535},
			&o.port).Or("callbackPort"),
		shape.Key("redirect",
			"The address that the browser comes back to, where it is registered with another host or path, such as "+
				"http://localhost:3118/oauth/callback.", shape.Text{Check: onLoopback}, &o.Redirect).Or("redirectUri"),
	}
}

func providerKeys(p *upstream.IdentityProvider) []shape.Field {
	return []shape.Field{
		shape.Key("issuer", "Its address, as its metadata has it.", shape.Text{Check: webURL}, &p.Issuer),
		shape.Key("client_id", "The client that is registered there for the hub.", plainText, &p.ClientID),
		shape.Key("client_secret", "Its secret, by reference: ${env:NAME} or ${file:path}.", shape.Text{Expand: true},
			&p.ClientSecret),
	}
}

// oauth makes the settings of a server's sign-in.
func (r serverReader) oauth() upstream.OAuth {
	o := &r.entry.Value.oauth.Value
	asserts, each := o.grant.Value == "jwt_bearer", o.identity.Value == perCaller
	machine := asserts || o.grant.Value == "client_credentials"
	switch {
	case machine && each:
		shape.FaultOf(r.Reader, o.identity, "with "+o.grant.Value+" the hub signs in as itself",
			"remove one of the two")
	case asserts && (!o.clientID.Present || !o.assertionFile.Present):
		shape.FaultOf(r.Reader, o.grant, "nothing to sign in with", "add client_id and assertion_file")
	case !asserts && o.assertionFile.Present:
		shape.FaultOf(r.Reader, o.assertionFile, "a token that is not used", "add grant: jwt_bearer")
	case o.provider.Present && !asserts:
		shape.FaultOf(r.Reader, o.provider, "an identity provider that is not asked",
			"add grant: jwt_bearer and assertion_file")
	case o.provider.Present && (o.provider.Value.Issuer == "" || o.provider.Value.ClientID == ""):
		shape.FaultOf(r.Reader, o.provider, "nobody to ask", "add issuer and client_id")
	case !asserts && machine && (!o.clientID.Present || !o.clientSecret.Present && !o.clientKey.Present):
		shape.FaultOf(r.Reader, o.grant, "nothing to sign in with", "add client_id, and client_secret or client_key")
	case o.clientSecret.Present && o.clientKey.Present:
		shape.FaultOf(r.Reader, o.clientKey, "a key beside a secret", "keep the one that is registered")
	case !o.clientID.Present && o.clientSecret.Present:
		shape.FaultOf(r.Reader, o.clientSecret, "a secret without its client", "add client_id")
	case !o.clientID.Present && o.clientKey.Present:
		shape.FaultOf(r.Reader, o.clientKey, "a key without its client", "add client_id")
	}
	c := o.OAuth
	c.AssertionFile, c.Provider = r.vars.path(o.assertionFile.Value), o.provider.Value
	c.ClientID, c.ClientSecret, c.ClientKey = o.clientID.Value, o.clientSecret.Value, o.clientKey.Value
	if c.Redirect == "" && o.port != 0 {
		c.Redirect = fmt.Sprintf("http://127.0.0.1:%d%s", o.port, signin.CallbackPath)
	}
	c.Machine, c.PerCaller, c.AssumePKCE = machine, each, o.pkce == "assume"
	return c
}
