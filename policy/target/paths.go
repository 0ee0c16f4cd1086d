package target

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	whatwg "github.com/nlnwa/whatwg-url/url"
	"golang.org/x/text/unicode/norm"

	"github.com/mcp-toolhub/mcp-toolhub/internal/inode"
)

const (
	maxLinks = 40      // links followed in one path, as Linux has it
	maxTwins = 4096    // entries of a directory that are looked through for twins
	maxPath  = 8 << 10 // bytes of a path
)

// paths returns the targets of a path: one, or more where programs read it in several ways.
func paths(t Target, text string, root Root) []Target {
	t.Kind, t.Remote = Path, root.Remote
	var out []Target
	for i, spelling := range spellings(text) {
		one := t
		if one.Notes = slices.Clone(t.Notes); i > 0 {
			one.Notes = append(one.Notes, Trimmed)
		}
		for _, found := range one.path(spelling, root) {
			if !slices.ContainsFunc(out, func(o Target) bool {
				return o.Resolved == found.Resolved &&
					o.Fault == found.Fault
			}) {
				out = append(out, found)
			}
		}
	}
	return out
}

// spellings returns the paths that programs read text as, text itself first. Many programs remove
// white space at its ends, and some stop at a NUL character.
func spellings(text string) []string {
	before, _, _ := strings.Cut(text, "\x00")
	var all []string
	for _, s := range []string{text, trimmed(text), trimmed(before)} {
		address := strings.Map(dropBreaks, s)
		if len(address) >= 5 && strings.EqualFold(address[:5], "file:") {
			all = append(all, fileURL(address)...)
		} else if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// path returns the targets of one spelling of a path: one, or two where programs resolve it in two ways.
func (t Target) path(text string, root Root) []Target {
	full, fault := absolute(&t, text, root)
	if fault != "" {
		t.Resolved, t.Fault = cut(full), fault
		return []Target{t}
	}
	if root.Remote {
		t.Resolved = path.Clean(full)
		return []Target{t}
	}
	lexical := filepath.Clean(full)
	follow(&t, full, root)
	if !strings.Contains(full, "..") || t.Fault != "" {
		return []Target{t}
	}
	// Node, Python and Go programs take ".." away before they open a path; the system follows links first.
	other := t
	other.Notes = slices.Clone(t.Notes)
	if follow(&other, lexical, root); other.Resolved == t.Resolved {
		return []Target{t}
	}
	other.Notes = append(other.Notes, Lexical)
	return []Target{t, other}
}

// fileURL returns the paths of a file URL: in the plain reading, where one of another host keeps
// its two slashes, which are refused where they matter, and in that of the URL Standard.
func fileURL(text string) []string {
	rest := text[len("file:"):]
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		host, _, _ := strings.Cut(after, "/")
		if host == "" || strings.EqualFold(host, "localhost") || host == "127.0.0.1" {
			rest = after[len(host):]
		}
	}
	rest, _, _ = strings.Cut(rest, "?")
	rest, _, _ = strings.Cut(rest, "#")
	found := []string{rest}
	if u, err := whatwg.Parse(text); err == nil {
		found = append(found, u.Pathname())
	}
	for i, path := range found {
		if decoded, err := url.PathUnescape(path); err == nil {
			path = decoded
		}
		if len(path) > 2 && path[0] == '/' && path[2] == ':' && runtime.GOOS == "windows" {
			path = path[1:]
		}
		found[i] = path
	}
	return found
}

// absolute returns text as an absolute path that is not clean yet: ".." means something only once links are followed.
func absolute(t *Target, text string, root Root) (full, fault string) {
	switch {
	case strings.ContainsRune(text, 0):
		return strings.ReplaceAll(text, "\x00", "␀"),
			"holds a NUL character, which no path can: send the path without it"
	case !utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError):
		return text, "holds what is no text: programs read it in several ways"
	case len(text) > maxPath:
		return text, "is longer than any path: send a shorter one"
	}
	slashed := text
	if runtime.GOOS == "windows" || root.Remote {
		slashed = strings.ReplaceAll(text, `\`, "/")
	}
	switch {
	case strings.HasPrefix(slashed, "//") && (runtime.GOOS == "windows" || root.Remote ||
		strings.HasPrefix(text, `\\`)):
		return text, "is a network or device path: opening it sends credentials to another machine"
	case strings.HasPrefix(slashed, "$HOME/"), strings.HasPrefix(slashed, "${HOME}/"), slashed == "$HOME",
		slashed == "${HOME}":
		_, rest, _ := strings.Cut(slashed, "HOME")
		return home(t, strings.TrimPrefix(rest, "}"), root)
	case strings.HasPrefix(slashed, "$"), strings.Contains(slashed, "${"), strings.Contains(slashed, "$("),
		strings.Contains(slashed, "`"), percentVariable(slashed):
		return text, "holds a variable or a command, which a shell would replace: write the path itself"
	case slashed == "~", strings.HasPrefix(slashed, "~/"):
		return home(t, slashed[1:], root)
	case otherHome(slashed):
		return text, "names the home directory of a user: write the path itself"
	}
	if runtime.GOOS == "windows" {
		if fault := windowsFault(slashed); fault != "" {
			return text, fault
		}
	}
	if strings.ContainsAny(text, "*?{") {
		t.Notes = append(t.Notes, Wildcard)
	}
	drive := len(slashed) > 2 && slashed[1] == ':' && slashed[2] == '/'
	switch {
	case filepath.IsAbs(text), root.Remote && (strings.HasPrefix(slashed, "/") || drive):
		return slashed, ""
	case root.Dir != "":
		return root.Dir + string(filepath.Separator) + slashed, ""
	case root.Remote:
		return "./" + slashed, ""
	}
	return text, "is relative, and the directory that it starts from is not known: send an absolute path"
}

func home(t *Target, rest string, root Root) (full, fault string) {
	t.Notes = append(t.Notes, Home)
	switch {
	case root.Home != "":
		return root.Home + rest, ""
	case root.Remote:
		return "~" + rest, ""
	}
	return "~" + rest, "starts at the home directory, which is not known: send an absolute path"
}

// percentVariable reports whether text begins with a variable as Windows writes it: %APPDATA%.
func percentVariable(text string) bool {
	if !strings.HasPrefix(text, "%") {
		return false
	}
	name, _, ok := strings.Cut(text[1:], "%")
	return ok && len(name) > 2 && !strings.ContainsAny(name, "/ ")
}

// otherHome reports whether text begins with ~user.
func otherHome(text string) bool {
	if len(text) < 2 || text[0] != '~' {
		return false
	}
	name, _, _ := strings.Cut(text[1:], "/")
	for i, r := range name {
		if (r < 'a' || r > 'z') && r != '_' && (i == 0 || (r < '0' || r > '9') && r != '-') {
			return false
		}
	}
	return true
}

// windowsFault refuses names that mean another file on Windows, or a device.
func windowsFault(slashed string) string {
	for i, name := range strings.Split(slashed, "/") {
		if i == 0 && len(name) == 2 && name[1] == ':' {
			continue
		}
		if strings.Contains(name, ":") {
			return "names a stream of a file, or starts from the directory of a drive: write the path in full"
		}
		if trimmed := strings.TrimRight(name, ". "); trimmed != name && trimmed != "" {
			return "holds a name that ends in a dot or space, which Windows takes away: write it without"
		}
		base, _, _ := strings.Cut(strings.ToUpper(name), ".")
		switch base {
		case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "COM1", "COM2", "COM3", "COM4", "COM5", "COM6", "COM7",
			"COM8", "COM9",
			"LPT1", "LPT2", "LPT3", "LPT4", "LPT5", "LPT6", "LPT7", "LPT8", "LPT9":
			return "names a device: write the path of a file"
		}
		if strings.Contains(name, "~") && i > 0 && shortName(name) {
			return "holds a short name, which stands for another one: write it in full"
		}
	}
	return ""
}

// shortName reports whether name may be the 8.3 name of another file: PROGRA~1.
func shortName(name string) bool {
	base, _, _ := strings.Cut(name, ".")
	at := strings.LastIndexByte(base, '~')
	return at > 0 && at+1 < len(base) && len(base) <= 8 && strings.Trim(base[at+1:], "0123456789") == ""
}

// follow resolves full, absolute, with every link followed as far as it exists. The rest is taken as it is written.
func follow(t *Target, full string, root Root) {
	at, rest := root.start(full)
	todo := filepath.ToSlash(rest)
	links, missing := 0, false
	for todo != "" {
		var name string
		name, todo, _ = strings.Cut(todo, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := below(at, name)
		if missing {
			at = next
			continue
		}
		if processFiles(at) {
			t.Resolved = filepath.Join(next, todo)
			t.Fault = "leads through the files of a process, which are others for every process: write the path itself"
			return
		}
		info, err := os.Lstat(next)
		switch {
		case err != nil:
			note := Unseen // and nothing below it can be seen either
			if errors.Is(err, fs.ErrNotExist) {
				note = Missing
			}
			at, missing, t.Notes = next, true, append(t.Notes, note)
		case info.Mode()&(fs.ModeSymlink|fs.ModeIrregular) != 0:
			link, err := os.Readlink(next)
			if err != nil {
				at = next // a reparse point that is no link
				continue
			}
			if links++; links > maxLinks {
				t.Resolved, t.Fault = next, "has too many symbolic links, or a circle of them: write the path itself"
				return
			}
			t.Notes = addNote(t.Notes, Symlink)
			if filepath.IsAbs(link) {
				volume := filepath.VolumeName(link)
				at = volume + string(filepath.Separator)
				link = link[len(volume):]
			}
			todo = filepath.ToSlash(link) + "/" + todo
		default:
			at = spelled(at, name, next, info)
			if todo == "" {
				noteFileKind(t, info)
			}
		}
	}
	t.Resolved = at
}

// below is the path of name in dir, which is clean; name is one name and neither dot nor dots.
func below(dir, name string) string {
	if os.IsPathSeparator(dir[len(dir)-1]) {
		return dir + name
	}
	return dir + string(filepath.Separator) + name
}

func addNote(notes []Note, n Note) []Note {
	if slices.Contains(notes, n) {
		return notes
	}
	return append(notes, n)
}

// processFiles reports whether dir is that of a process in /proc, whose links mean something else to each process.
func processFiles(dir string) bool {
	rest, ok := strings.CutPrefix(dir, "/proc/")
	if !ok || strings.Contains(rest, "/") {
		return false
	}
	return rest == "self" || rest == "thread-self" || strings.Trim(rest, "0123456789") == ""
}

// noteFileKind notes hard links and special files.
func noteFileKind(t *Target, info fs.FileInfo) {
	switch regular := info.Mode().IsRegular(); {
	case regular && inode.Names(info) > 1:
		t.Notes = append(t.Notes, HardLink)
	case !regular && !info.IsDir():
		t.Notes = append(t.Notes, Special)
	}
}

// spelled returns full, which is dir/name, as the directory itself spells it: systems that do not
// care for case, or for how a letter is composed, find a file by other names as well.
func spelled(dir, name, full string, info fs.FileInfo) string {
	if runtime.GOOS != "darwin" && runtime.GOOS != "windows" && runtime.GOOS != "ios" {
		return full
	}
	for _, entry := range entries(dir) {
		if entry == name || foldName(entry) != foldName(name) {
			continue
		}
		if other, err := os.Lstat(filepath.Join(dir, entry)); err == nil && os.SameFile(other, info) {
			return filepath.Join(dir, entry)
		}
	}
	return full
}

// Twins notes names that differ from a missing path in case or composition only. It reads a
// directory, so Resolve leaves it to code that shows the target to people.
func (t *Target) Twins() {
	if t.Kind != Path || t.Remote || t.Fault != "" || !t.Has(Missing) {
		return
	}
	for at := t.Resolved; ; {
		dir := filepath.Dir(at)
		if dir == at {
			return
		}
		if _, err := os.Lstat(dir); err == nil {
			t.Notes = slices.Clip(t.Notes)
			name := filepath.Base(at)
			for _, entry := range entries(dir) {
				switch {
				case entry == name || foldName(entry) != foldName(name):
				case norm.NFC.String(entry) == norm.NFC.String(name):
					t.Notes = addNote(t.Notes, UnicodeTwin)
				default:
					t.Notes = addNote(t.Notes, CaseTwin)
				}
			}
			return
		}
		at = dir
	}
}

// entries returns the names in dir, the first few thousand.
func entries(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	found, _ := f.Readdirnames(maxTwins)
	return found
}

// foldName folds the spellings that some file system takes for one name: letter case, composition,
// and characters that HFS+ ignores.
func foldName(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return strings.ToLower(name)
	}
	name = strings.Map(dropIgnored, norm.NFKD.String(name))
	return norm.NFC.String(strings.ToLower(strings.ToUpper(name)))
}
