// Package secrets keeps the secrets that a config refers to as ${secret:NAME}: in one sealed file
// of the state directory, with its key beside it. Only their owner can read the two files. Whoever
// can read both can read the secrets. This keeps secrets out of configs, which people share, and
// out of backups of single files.
package secrets

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/seal"
	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
)

// The files of the state directory.
const (
	File    = "secrets"
	KeyFile = "secrets.key"
)

// nameForm matches names that can stand between ${secret: and }.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)

// ValidName reports whether a secret can have that name.
func ValidName(name string) bool { return nameForm.MatchString(name) }

// Read returns the secrets in the state directory, by name. It returns none where nobody has stored any.
func Read(state string) (map[string]string, error) {
	all := map[string]string{}
	sealed, err := os.ReadFile(filepath.Join(state, File))
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}
	box, err := open(state)
	if err != nil {
		return nil, err
	}
	plain, err := box.Open(string(sealed))
	if err == nil {
		err = json.Unmarshal(plain, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read secrets: %q does not fit to its key %q: bring both files back, or remove both "+
			"and set the secrets again",
			filepath.Join(state, File), KeyFile)
	}
	return all, nil
}

// Change calls change with the secrets, and stores what change has made of them, unless it returns an error.
func Change(state string, change func(all map[string]string) error) error {
	unlock, err := statefile.Lock(filepath.Join(state, File))
	if err != nil {
		return fmt.Errorf("change secrets: %w", err)
	}
	defer unlock()
	all, err := Read(state)
	if err != nil {
		return err
	}
	if err := change(all); err != nil {
		return err
	}
	box, err := open(state)
	if err != nil {
		return err
	}
	plain, err := json.Marshal(all)
	if err == nil {
		err = statefile.Write(filepath.Join(state, File), []byte(box.Seal(plain)))
	}
	if err != nil {
		return fmt.Errorf("change secrets: %w", err)
	}
	return nil
}

func open(state string) (*seal.Box, error) {
	key, err := seal.LoadKey(filepath.Join(state, KeyFile))
	if err != nil {
		return nil, fmt.Errorf("open secrets: %w", err)
	}
	return seal.New(key, "secrets")
}
