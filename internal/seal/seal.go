// Package seal encrypts and authenticates texts that the hub hands to strangers and takes back. A
// stranger can neither read nor change such a text. Its owner checks the content, and whether it
// still holds.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
)

// KeySize is the length of a key in bytes.
const KeySize = 32

// errForged is returned for a text that no Box of this key and purpose has sealed.
var errForged = errors.New("open seal: the text was not sealed by this hub, or was changed since")

// Box seals and opens texts of one purpose. It is safe for concurrent use.
type Box struct {
	aead    cipher.AEAD
	purpose []byte
}

// New returns the box of a key, of KeySize random bytes, for one purpose: a text that was sealed
// for another one does not open. A nil key stands for a random one that lasts as long as the box.
func New(key []byte, purpose string) (*Box, error) {
	if key == nil {
		key = make([]byte, KeySize)
		_, _ = rand.Read(key) // "Read fills b with cryptographically secure random bytes. It never returns an error"
	}
	if len(key) != KeySize {
		return nil, fmt.Errorf("new seal: the key has %d bytes: it needs %d", len(key), KeySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("new seal: %w", err)
	}
	// 96 random bits a text: good for four thousand million texts of one key.
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("new seal: %w", err)
	}
	return &Box{aead: aead, purpose: []byte(purpose)}, nil
}

// Seal returns plain as a text of letters, digits, "-" and "_".
func (b *Box) Seal(plain []byte) string {
	return base64.RawURLEncoding.EncodeToString(b.aead.Seal(nil, nil, plain, b.purpose))
}

// Open returns what was sealed, or errForged.
func (b *Box) Open(text string) ([]byte, error) {
	// Strict, and without the line breaks that the decoder skips: else several texts would stand for one.
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") {
		return nil, errForged
	}
	plain, err := b.aead.Open(nil, nil, sealed, b.purpose)
	if err != nil {
		return nil, errForged
	}
	return plain, nil
}

// Digest is a digest of a text of one purpose, in hex: HMAC-SHA-256 with a key that is derived from
// key for that purpose. Without the key nobody can tell a text from its digest by trying texts out.
func Digest(key []byte, purpose string, text []byte) (digest string) {
	return hex.EncodeToString(mac(mac(key, []byte("digest of "+purpose)), text))
}

func mac(key, text []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(text)
	return h.Sum(nil)
}

// LoadKey returns the key in file, which it makes at the first time, for its owner alone to read.
// Processes that do so at the same time get the same key. The file has the whole key or is not
// there, whenever a process is killed.
func LoadKey(file string) ([]byte, error) {
	if key, err := readKey(file); key != nil || err != nil {
		return key, err
	}
	unlock, err := statefile.Lock(file)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	defer unlock()
	if key, err := readKey(file); key != nil || err != nil { // another process was quicker
		return key, err
	}
	key := make([]byte, KeySize)
	_, _ = rand.Read(key) // as in New
	if err := errors.Join(statefile.Write(file, key), statefile.SyncDir(filepath.Dir(file))); err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	return key, nil
}

// ErrDamaged means that a file of a key holds something else.
var ErrDamaged = errors.New("remove it, and the hub makes another one")

// readKey returns the key in file; nil where the file is not there, or is empty: nobody has used a key of it then.
func readKey(file string) ([]byte, error) {
	var key []byte
	err := os.Chmod(file, 0o600)
	if err == nil {
		key, err = os.ReadFile(file)
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(key) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	if len(key) != KeySize {
		return nil, fmt.Errorf("read key: %q does not hold %d bytes: %w", file, KeySize, ErrDamaged)
	}
	return key, nil
}
