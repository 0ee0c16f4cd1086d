package persist

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestCatalogs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "catalogs")
	c, err := OpenCatalogs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Load("ab01"); ok {
		t.Error("a catalog that was never saved is there")
	}
	var writing sync.WaitGroup
	for _, b := range []byte("xyz") {
		writing.Go(func() {
			if err := c.Save("ab01", bytes.Repeat([]byte{b}, 100_000)); err != nil {
				t.Error(err)
			}
		})
		writing.Go(func() {
			if data, ok := c.Load("ab01"); ok && bytes.Count(data, data[:1]) != 100_000 {
				t.Error("a part of a catalog was read")
			}
		})
	}
	writing.Wait()
	info, err := os.Stat(filepath.Join(dir, "ab01"+catalogSuffix))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file %v, %v", info, err)
	}
	for _, key := range []string{"", "..", "../ab", "AB", "a/b", strings.Repeat("g", 4)} {
		if err := c.Save(key, nil); err == nil {
			t.Errorf("key %q was taken", key)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestCatalogsOutOfUseAreRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{"01": time.Hour, "02": maxCatalogAge + time.Hour} {
		file := filepath.Join(dir, name+catalogSuffix)
		if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := OpenCatalogs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Load("01"); !ok {
		t.Error("a catalog in use was removed")
	}
	if _, ok := c.Load("02"); ok {
		t.Error("a catalog out of use was kept")
	}
}
