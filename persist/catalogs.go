package persist

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
)

// Catalogs keeps what servers offered when they were last seen, so that a hub that starts can list their tools before
// they are up. It is safe for concurrent use, also by several processes on one directory.
type Catalogs struct{ dir string }

const (
	maxCatalogBytes = 256 << 20
	catalogSuffix   = ".catalog.json"

	// maxCatalogAge is the age at which a catalog is removed: its server has left the config.
	maxCatalogAge = 90 * 24 * time.Hour
)

// OpenCatalogs keeps catalogs in dir, which it makes with mode 0700, and removes those that are out of use.
func OpenCatalogs(dir string) (*Catalogs, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory for catalogs: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the directory of catalogs: %w", err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > maxCatalogAge {
			_ = os.Remove(filepath.Join(dir, e.Name())) // the next start tries again
		}
	}
	return &Catalogs{dir: dir}, nil
}

// Load returns the catalog that was last saved under key; ok is false where there is none that can be read.
func (c *Catalogs) Load(key string) (data []byte, ok bool) {
	name, err := c.file(key)
	if err != nil {
		return nil, false
	}
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxCatalogBytes {
		return nil, false
	}
	data, err = os.ReadFile(name)
	return data, err == nil
}

// Save keeps data under key, a hex digest. Readers see the old or the new catalog, never a part of one.
func (c *Catalogs) Save(key string, data []byte) error {
	name, err := c.file(key)
	if err != nil {
		return err
	}
	if len(data) > maxCatalogBytes {
		return fmt.Errorf("save catalog: %d bytes are more than the %d that are kept", len(data), maxCatalogBytes)
	}
	if err := statefile.WriteCache(name, data); err != nil {
		return fmt.Errorf("save catalog: %w: free space in the state directory, or make it writable", err)
	}
	return nil
}

// file returns the path of the catalog of key. A key is hex, so it cannot lead out of the directory.
func (c *Catalogs) file(key string) (string, error) {
	if _, err := hex.DecodeString(key); err != nil || key == "" || strings.ToLower(key) != key {
		return "", fmt.Errorf("catalog key %q is no hex digest", key)
	}
	return filepath.Join(c.dir, key+catalogSuffix), nil
}
