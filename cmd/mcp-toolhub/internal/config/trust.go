package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// A config that was found in the working directory may be a stranger's: it came with a cloned
// repository, perhaps. It is used only after a person has trusted it. The state directory holds one
// record for each trusted config: its path, and the digest of every file that was read for it. So
// trust ends when one of these files changes. They are the config itself, its rule files, and the
// files of envFile and ${file:…}: each of them can bring a command, a variable or a rule.

// trustDir holds the records, in the state directory.
const trustDir = "trusted"

// trustRecord names a config that a person has trusted.
type trustRecord struct {
	Path string `json:"path"` // of the config
	// path to SHA-256 of every file that was read for it, the config itself included
	Files map[string]string `json:"files"`
}

// UntrustedError means that a config was found in the working directory and that no person has trusted it as it is now.
type UntrustedError struct {
	Path     string          // absolute
	Changed  bool            // it was trusted in another form
	Faults   textfile.Faults // what is wrong with it; then it cannot be trusted
	Settings *Settings       // what it says, for a person to decide about; nil where there are Faults
}

// Error says why the config is not used and what to do.
func (e *UntrustedError) Error() string {
	w := e.Warning()
	return w.File + ": " + w.Message + "; " + w.Hint
}

// Warning is Error as a fault of the file.
func (e *UntrustedError) Warning() textfile.Fault {
	f := textfile.Fault{File: e.Path, Position: textfile.At(1, 1),
		Message: "this config is not used: nobody has allowed it",
		Hint:    fmt.Sprintf("look at it, then run: mcp-toolhub allow-config %q", e.Path)}
	if e.Changed {
		f.Message = "this config is not used as it is now: it, or a file that it reads, has changed since it " +
			"was allowed"
		f.Hint = fmt.Sprintf("look at what has changed, then run: mcp-toolhub allow-config %q", e.Path)
	}
	if len(e.Faults) > 0 {
		f.Message += ", and it has faults"
		f.Hint = fmt.Sprintf("see them with: mcp-toolhub check --config %q", e.Path)
	}
	return f
}

// underTrust takes the settings and the error of a load of a project config, and refuses what nobody has trusted.
func underTrust(state string, src Source, s *Settings, err error) (*Settings, error) {
	path := src.Path
	record, readErr := readTrust(trustFile(state, path))
	if readErr != nil {
		return nil, readErr
	}
	at := realPath(path)
	e := &UntrustedError{Path: at, Changed: record.Path != "", Settings: s}
	switch {
	case s != nil && record.Path == at && src.covers(s.Digests, record.Files):
		return s, nil
	case s != nil:
		return nil, e
	case !errors.As(err, &e.Faults):
		return nil, err // it cannot be read
	}
	if data, readErr := readRegular(path, maxFileBytes); readErr == nil && record.Files[at] == tool.Digest(data) {
		return nil, err // the person's own file: a variable may not be set today
	}
	return nil, e
}

// covers reports whether the files that were read are those that a person has trusted, or of these what src reads.
func (src Source) covers(read, trusted map[string]string) bool {
	for name, digest := range read {
		if trusted[name] != digest {
			return false
		}
	}
	return len(read) == len(trusted) || len(src.Without) > 0
}

// Trust records that a person trusts the config of s as it was read.
func (s *Settings) Trust() error {
	text, err := json.MarshalIndent(trustRecord{realPath(s.Path), s.Digests}, "", "  ")
	if err != nil {
		return fmt.Errorf("allow %q: %w", s.Path, err)
	}
	file := trustFile(s.StateDir, s.Path)
	if err := statefile.Write(file, append(text, '\n')); err != nil {
		return fmt.Errorf("allow %q: %w", s.Path, err)
	}
	s.followTrust(file)
	return nil
}

// followTrust notes which record s depends on, and what it is now.
func (s *Settings) followTrust(file string) {
	s.TrustFile = file
	if info, err := os.Stat(file); err == nil {
		s.Read[file] = info
	}
}

// Distrust takes back that the config at path is trusted. It reports whether it was.
func Distrust(state, path string) (bool, error) {
	err := os.Remove(trustFile(state, path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("allow %q no longer: %w", path, err)
	}
	return true, nil
}

// trustFile is the path of the record for the config at path.
func trustFile(state, path string) string {
	return filepath.Join(state, trustDir, tool.Digest([]byte(realPath(path)))+".json")
}

// readTrust returns the record, an empty one where there is none.
func readTrust(file string) (trustRecord, error) {
	var record trustRecord
	data, err := readRegular(file, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return record, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &record)
	}
	if err != nil {
		return record, fmt.Errorf("read what is allowed from %q: %w: remove the file, then allow the config again",
			file, err)
	}
	return record, nil
}

// realPath is path, absolute and with the links to its directory followed: by whichever way a directory is entered, its
// files go by one name.
func realPath(path string) string {
	dir, name := filepath.Split(absolute(path))
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return filepath.Join(dir, name)
}
