package evidence

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
)

// HeadsSuffix is that of the file beside the key that keeps the last head of each chain. Only who
// has the key can write it: so nobody else removes a chain, or takes it back, and has the file
// signed as it is by then.
const HeadsSuffix = ".heads"

// maxKept bounds the heads that are kept. Those of files that are gone are kept, too: no such file
// comes back with another chain.
const maxKept = 1000

// keptHeads reads the heads that are kept beside the key, by file. There are none before the first Extend.
func keptHeads(keyFile string, key ed25519.PrivateKey) (map[string]headRef, error) {
	kept := make(map[string]headRef)
	text, err := os.ReadFile(keyFile + HeadsSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return kept, nil
	}
	var s signed
	if err != nil || json.Unmarshal(text, &s) != nil || !s.by(key.Public().(ed25519.PublicKey)) ||
		json.Unmarshal(s.Head, &kept) != nil {
		return nil, errors.Join(err, fmt.Errorf("%q: %w", keyFile+HeadsSuffix, ErrDamaged))
	}
	return kept, nil
}

// keepHeads writes the heads that have moved on. Chains are on the disk by then: after a loss of
// power none is shorter than its head.
func (k *Keeper) keepHeads(key ed25519.PrivateKey) error {
	moved := false
	for name, e := range k.seen {
		if e.damage == nil && e.head.Lines > k.kept[name].Lines {
			k.kept[name], moved = headRef{name, e.head.Lines, e.head.Chain}, true
		}
	}
	if !moved {
		return nil
	}
	for len(k.kept) > maxKept { // names begin with the time
		delete(k.kept, slices.Min(slices.Collect(maps.Keys(k.kept))))
	}
	text, err := sign(key, k.kept)
	if err == nil {
		err = statefile.Write(k.keyFile+HeadsSuffix, text)
	}
	return err
}
