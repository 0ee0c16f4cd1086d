package persist

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
)

// identityFile holds what Identity returns, in the directory of the journal.
const identityFile = "journal.id"

// Identity returns what tells the journal in dir from all others, those of other machines too. The
// first call makes it, and the directory where there is none. Whoever copies a directory for
// another hub leaves the file out.
func Identity(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", &JournalError{Op: "identify journal", Path: dir, Err: err}
	}
	path := filepath.Join(dir, identityFile)
	unlock, err := statefile.Lock(path)
	if err != nil {
		return "", &JournalError{Op: "identify journal", Path: path, Err: err}
	}
	defer unlock()
	text, err := os.ReadFile(path)
	id := strings.TrimSpace(string(text))
	if errors.Is(err, fs.ErrNotExist) || err == nil && id == "" {
		id = rand.Text()
		err = statefile.Write(path, []byte(id+"\n"))
	}
	if err != nil {
		return "", &JournalError{Op: "identify journal", Path: path, Err: err}
	}
	return id, nil
}
