package signin

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/mcp-toolhub/mcp-toolhub/internal/seal"
)

const (
	keyringService = "mcp-toolhub"    // the name of the hub's items in a keyring
	keyringTime    = 30 * time.Second // for an answer of the keyring, which may have to ask a person to unlock it
)

// ring keeps the key of a store in the system's keyring, under the path of the store's file. The
// store's mutex guards it.
type ring struct {
	file string // of the store
	key  []byte // nil before it was read
}

// OpenKeyring is Open for a store whose key is in the system's keyring. A key that stands beside the file moves there.
func OpenKeyring(dir string) *Store {
	s := Open(dir)
	s.ring = &ring{file: s.file}
	return s
}

// load returns the key, which it makes at the first time.
func (r *ring) load() ([]byte, error) {
	if r.key != nil {
		return r.key, nil
	}
	key, err := r.get()
	if errors.Is(err, keyring.ErrNotFound) {
		key, err = r.first()
	}
	if err != nil {
		return nil, &StoreError{fmt.Errorf("the system keyring: %w: unlock or start it (on Linux a secret service "+
			"such as gnome-keyring, in your desktop session), or set hub.sign_in_key: file", err)}
	}
	r.key = key
	return key, nil
}

// first puts a key into the keyring: that which stands beside the file, or a new one.
func (r *ring) first() ([]byte, error) {
	beside := r.file + ".key"
	key, err := os.ReadFile(beside)
	if _, sealed := os.Stat(r.file); errors.Is(err, fs.ErrNotExist) && sealed == nil {
		if key, err = r.get(); errors.Is(err, keyring.ErrNotFound) { // otherwise another hub has just moved it
			return nil, fmt.Errorf("it does not hold the key of %q: remove that file and sign in again", r.file)
		}
		return key, err
	}
	if errors.Is(err, fs.ErrNotExist) {
		key = make([]byte, seal.KeySize)
		_, err = rand.Read(key)
	}
	if err != nil {
		return nil, err
	}
	_, err = within(func() (string, error) {
		return "", keyring.Set(keyringService, r.file, base64.StdEncoding.EncodeToString(key))
	})
	if err != nil {
		return nil, err
	}
	kept, err := r.get()
	if err != nil || !bytes.Equal(kept, key) {
		return nil, errors.Join(errors.New("it did not keep the key"), err)
	}
	if err := os.Remove(beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return key, nil
}

func (r *ring) get() ([]byte, error) {
	text, err := within(func() (string, error) { return keyring.Get(keyringService, r.file) })
	if err != nil {
		return nil, err
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != seal.KeySize {
		return nil, fmt.Errorf("its item %q of %q is no key: remove it and sign in again", keyringService, r.file)
	}
	return key, nil
}

// within bounds the wait for a keyring: one that asks a person who is not there never answers.
func within(ask func() (string, error)) (string, error) {
	type answer struct {
		text string
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		text, err := ask()
		answered <- answer{text, err}
	}()
	timer := time.NewTimer(keyringTime)
	defer timer.Stop()
	select {
	case a := <-answered:
		return a.text, a.err
	case <-timer.C:
		return "", fmt.Errorf("no answer within %s", keyringTime)
	}
}
