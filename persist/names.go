package persist

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	namePrefix = "journal-"
	nameSuffix = ".jsonl"
	nameTime   = "20060102T150405.000Z"
)

// Files returns the names of the files of the journal in dir, oldest first.
func Files(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if _, _, ok := parseName(e.Name()); ok {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// nextName returns a name that sorts after all of names, which are sorted. It holds the time of now, unless the clock
// was set back: then the newest time again, with the next number.
func nextName(names []string, now time.Time) string {
	stamp, number := now.UTC().Format(nameTime), 1
	if len(names) > 0 {
		if last, n, _ := parseName(names[len(names)-1]); last >= stamp {
			stamp, number = last, n+1
		}
	}
	return fmt.Sprintf("%s%s-%06d%s", namePrefix, stamp, number, nameSuffix)
}

// parseName splits the name of a journal file.
func parseName(name string) (stamp string, number int, ok bool) {
	rest, isJournal := strings.CutPrefix(name, namePrefix)
	rest, isLines := strings.CutSuffix(rest, nameSuffix)
	stamp, digits, isNumbered := strings.Cut(rest, "-")
	if !isJournal || !isLines || !isNumbered || len(digits) != 6 {
		return "", 0, false
	}
	if _, err := time.Parse(nameTime, stamp); err != nil {
		return "", 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	return stamp, int(n), err == nil
}
