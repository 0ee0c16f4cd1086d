package search

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"sort"
	"strings"
	"sync"
)

// wordnetText is made by .ci/wordnet. Its licence is in wordnet.LICENSE.
//
//go:embed wordnet.txt.gz
var wordnetText []byte

// thesaurus holds lines in order: a word, words of like meaning, and behind ">" words of wider meaning.
type thesaurus []string

// wordNet is unpacked at the first unknown word.
var wordNet = sync.OnceValue(func() thesaurus {
	z, err := gzip.NewReader(bytes.NewReader(wordnetText))
	if err != nil {
		panic(err) // it is embedded
	}
	text, err := io.ReadAll(z)
	if err != nil {
		panic(err)
	}
	return strings.Split(string(text), "\n")
})

// of returns the words of like and of wider meaning for a word in any inflection.
func (t thesaurus) of(w string) (like, wider []string) {
	base := inflected(plural(w))
	for _, form := range []string{w, plural(w), base, base + "e"} {
		i := sort.SearchStrings(t, form+" ")
		if i == len(t) {
			continue
		}
		if rest, ok := strings.CutPrefix(t[i], form+" "); ok {
			l, wide, _ := strings.Cut(rest, ">")
			return strings.Fields(l), strings.Fields(wide)
		}
	}
	return nil, nil
}
