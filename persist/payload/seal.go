package payload

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
)

// newSeal returns what seals payloads with a key that is derived from secret; nil for "".
func newSeal(secret string) (cipher.AEAD, error) {
	if secret == "" {
		return nil, nil
	}
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, "mcp-toolhub: stored results", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

var errSealed = errors.New("it was sealed with another key, or changed since")
