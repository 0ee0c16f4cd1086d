package settings

// OAuth says how the hub signs in to a server. The zero value suits most: the server says where,
// and the hub registers itself there.
type OAuth struct {
	// of a client that was registered beforehand, or the https address of a Client ID Metadata
	// Document
	ClientID     string
	ClientSecret string
	ClientKey    string // PEM of a private key that stands in for the secret (private_key_jwt)

	Machine bool   // the hub signs in as itself: no person is asked
	Issuer  string // the authorization server, where the server names none, or several
	// the value of the parameter resource in place of the server's own; OmitResource leaves it out
	Resource   string
	AssumePKCE bool     // the authorization server takes PKCE with S256, although its metadata does not say so
	Scopes     []string // asked for in place of those that the server names
	Redirect   string   // the address on loopback that the browser comes back to; "": any port, and /callback

	// AssertionFile holds the token by which the hub signs in as itself (RFC 7523); "" for client
	// credentials. It is read at each use.
	AssertionFile string
	// that has made that token for a user, and makes of it what the authorization server takes; or
	// zero
	Provider IdentityProvider

	// PerCaller servers are used by each caller as themselves: with a sign-in, and over a connection, of their own.
	PerCaller bool
}

// OmitResource as OAuth.Resource: authorization servers such as Entra's refuse the parameter.
const OmitResource = "omit"

// IdentityProvider is a company's, which answers for its people at authorization servers (MCP's
// enterprise-managed authorization).
type IdentityProvider struct{ Issuer, ClientID, ClientSecret string }
