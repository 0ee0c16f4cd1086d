package signin

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	proofAlg  = "ES256"
	typeDPoP  = "DPoP" // of tokens that are bound to a key, and the scheme they are sent with (RFC 9449)
	nonceCode = "use_dpop_nonce"
	maxNonce  = 1 << 10 // bytes
	maxNonces = 20      // addresses whose nonces are remembered
)

// prover proves that the hub has the key that the tokens of a grant are bound to (RFC 9449):
// whoever steals such a token cannot use it. It is safe for concurrent use.
type prover struct {
	text string // of key, as a Grant has it
	key  *ecdsa.PrivateKey

	mu     sync.Mutex
	nonces map[string]string // that a proof for an address has to hold, as its server has said
}

// newProofKey makes a key, as a Grant has it.
func newProofKey() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	return base64.StdEncoding.EncodeToString(raw), err
}

// proverOf returns the prover with the key of a grant.
func proverOf(text string) (*prover, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(raw)
	key, ok := parsed.(*ecdsa.PrivateKey)
	if err != nil || !ok {
		return nil, errors.New("the key of the sign-in cannot be read: sign out, and in again")
	}
	return &prover{text: text, key: key, nonces: make(map[string]string)}, nil
}

// place is the address of a request as a proof has it: "without query and fragment parts".
func place(u *url.URL) string {
	at := *u
	at.RawQuery, at.ForceQuery, at.Fragment, at.RawFragment, at.User = "", false, "", "", nil
	return at.String()
}

// prove adds the proof to a request, with which token is sent; "" for none. It is good for this request alone.
func (p *prover) prove(req *http.Request, token string) error {
	at := place(req.URL)
	claims := jwt.MapClaims{"jti": rand.Text(), "htm": req.Method, "htu": at, "iat": time.Now().Unix()}
	if token != "" {
		digest := sha256.Sum256([]byte(token))
		claims["ath"] = base64.RawURLEncoding.EncodeToString(digest[:])
	}
	p.mu.Lock()
	nonce := p.nonces[at]
	p.mu.Unlock()
	if nonce != "" {
		claims["nonce"] = nonce
	}
	proof := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	public, err := p.key.PublicKey.Bytes() // 4, x and y
	if err != nil {
		return err
	}
	proof.Header["typ"] = "dpop+jwt"
	proof.Header["jwk"] = map[string]string{"kty": "EC", "crv": "P-256",
		"x": base64.RawURLEncoding.EncodeToString(public[1:33]),
		"y": base64.RawURLEncoding.EncodeToString(public[33:])}
	signed, err := proof.SignedString(p.key)
	req.Header.Set("DPoP", signed)
	return err
}

// learn remembers the nonce that an answer from u brings, and reports whether it is a new one.
func (p *prover) learn(u *url.URL, h http.Header) bool {
	nonce, at := h.Get("DPoP-Nonce"), place(u)
	p.mu.Lock()
	defer p.mu.Unlock()
	if nonce == "" || len(nonce) > maxNonce || nonce == p.nonces[at] {
		return false
	}
	if len(p.nonces) >= maxNonces {
		clear(p.nonces)
	}
	p.nonces[at] = nonce
	return true
}

// proving is the http.RoundTripper of requests for tokens that are bound to the prover's key.
type proving struct {
	*prover
	endpoint string
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper. A request that is refused for lack of a nonce is sent
// once more, with the nonce of the refusal.
func (p proving) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	if req.URL.String() != p.endpoint || req.GetBody == nil {
		return p.next.RoundTrip(req)
	}
	for again := false; ; again = true {
		one := req.Clone(req.Context())
		if one.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
		if err := p.prove(one, ""); err != nil {
			return nil, err
		}
		if resp, err = p.next.RoundTrip(one); err != nil {
			return nil, err
		}
		if !p.learn(req.URL, resp.Header) || again ||
			resp.StatusCode != http.StatusBadRequest && resp.StatusCode != http.StatusUnauthorized {
			return resp, nil
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			return nil, err
		}
		var said struct{ Error string }
		if _ = json.Unmarshal(body, &said); said.Error != nonceCode {
			resp.Body = io.NopCloser(bytes.NewReader(body))
			return resp, nil
		}
	}
}
