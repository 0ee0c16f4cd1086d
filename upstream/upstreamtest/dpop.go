package upstreamtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// proof checks the DPoP proof of a request to the address at, which is sent with token; "" for
// none. It returns the key of the proof. Each proof is good once, and for the nonce of that place.
// The lock is held.
func (a *AuthServer) proof(r *http.Request, at, token string) (key string, err error) {
	proofs := r.Header.Values("DPoP")
	if len(proofs) != 1 {
		return "", fmt.Errorf("%d proofs", len(proofs))
	}
	var claims struct {
		jwt.RegisteredClaims
		Method  string `json:"htm"`
		Address string `json:"htu"`
		Token   string `json:"ath"`
		Nonce   string `json:"nonce"`
	}
	_, err = jwt.ParseWithClaims(proofs[0], &claims, func(t *jwt.Token) (any, error) {
		jwk, _ := t.Header["jwk"].(map[string]any)
		x, _ := jwk["x"].(string)
		y, _ := jwk["y"].(string)
		key = x + y
		point, err := coordinates(x, y)
		if err != nil || t.Header["typ"] != "dpop+jwt" || len(jwk) != 4 {
			return nil, errors.Join(err, fmt.Errorf("head %v", t.Header))
		}
		return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	}, jwt.WithValidMethods([]string{"ES256"}), jwt.WithIssuedAt())
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256([]byte(token))
	bound := base64.RawURLEncoding.EncodeToString(digest[:])
	if token == "" {
		bound = ""
	}
	switch {
	case claims.Method != r.Method || claims.Address != at:
		return "", fmt.Errorf("it is for %s %s", claims.Method, claims.Address)
	case claims.Token != bound:
		return "", errors.New("it is for another token")
	case claims.ID == "" || a.proofs[claims.ID]:
		return "", errors.New("it was used before")
	}
	put(&a.proofs, claims.ID, true)
	if a.Nonce != "" && claims.Nonce != a.Nonce+" at "+at {
		return key, errNonce
	}
	return key, nil
}

var errNonce = errors.New("use_dpop_nonce")

// coordinates is an uncompressed point.
func coordinates(x, y string) ([]byte, error) {
	point := []byte{4}
	for _, text := range []string{x, y} {
		raw, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			return nil, err
		}
		point = append(point, raw...)
	}
	return point, nil
}

// unproved refuses a request whose proof is not good, and keeps why.
func (a *AuthServer) unproved(w http.ResponseWriter, at string, err error) {
	if errors.Is(err, errNonce) {
		w.Header().Set("DPoP-Nonce", a.Nonce+" at "+at)
		a.nonces++
		return
	}
	a.faults = append(a.faults, at+": "+err.Error())
}

// Proofs returns how many proofs lacked a nonce, and what was wrong with others.
func (a *AuthServer) Proofs() (nonces int, faults []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.nonces, a.faults
}

// SetNonce makes the proofs need another nonce from now on.
func (a *AuthServer) SetNonce(nonce string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Nonce = nonce
}

// SetAssertion makes the server take another assertion from now on.
func (a *AuthServer) SetAssertion(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Assertion = text
}

// bearer is the token of a request, as it has to be sent.
func (a *AuthServer) bearer(r *http.Request) string {
	scheme := "Bearer "
	if a.Bound {
		scheme = "DPoP "
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), scheme)
	if !ok {
		return ""
	}
	return token
}
