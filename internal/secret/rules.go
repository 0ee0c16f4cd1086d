package secret

import (
	_ "embed"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
)

// rulesText are the rules of gitleaks v8.30.1 as they are. gitleaks.LICENSE is their licence, MIT.
//
//go:embed gitleaks.toml
var rulesText []byte

// rule is one rule of gitleaks. Rules for files of a kind are left out: a result has no file name.
type rule struct {
	id       string
	keywords []string // lower case
	named    bool     // a name, a sign and a value: see nameForm
	long     bool     // what it finds may be long, or without digits
	group    int      // of the secret; 0 for the first that matched
	entropy  float64
	allowed  []allowlist
	regex    func() *regexp.Regexp // compiled when it is first needed
}

// allowlist says what a rule finds that is no secret.
type allowlist struct {
	target string // "match", "line" or the secret
	regex  func() []*regexp.Regexp
	stops  []string
}

// nameForm begins the rules that find a random value by the name before it.
const nameForm = `(?i)[\w.-]{0,50}?(?:`

// file is what is read of gitleaks.toml.
type file struct {
	Allowlist listText `toml:"allowlist"`
	Rules     []struct {
		ID         string     `toml:"id"`
		Regex      string     `toml:"regex"`
		Group      int        `toml:"secretGroup"`
		Entropy    float64    `toml:"entropy"`
		Keywords   []string   `toml:"keywords"`
		Path       string     `toml:"path"`
		Allowlists []listText `toml:"allowlists"`
	} `toml:"rules"`
}

type listText struct {
	Condition   string   `toml:"condition"`
	Paths       []string `toml:"paths"`
	RegexTarget string   `toml:"regexTarget"`
	Regexes     []string `toml:"regexes"`
	StopWords   []string `toml:"stopwords"`
}

// ruleSet is all rules, and the index by which a text is looked through once.
type ruleSet struct {
	rules []rule
	index keywordIndex
	none  allowlist // for all rules
}

// loaded reads the rules when they are first needed.
var loaded = sync.OnceValue(func() *ruleSet {
	var f file
	if err := toml.Unmarshal(rulesText, &f); err != nil {
		panic("gitleaks.toml: " + err.Error()) // a test reads it
	}
	rulesText = nil
	set := &ruleSet{none: f.Allowlist.compiled()}
	for _, r := range f.Rules {
		if r.Regex == "" || r.Path != "" {
			continue
		}
		one := rule{id: r.ID, keywords: r.Keywords, group: r.Group,
			named: strings.HasPrefix(r.Regex, nameForm) && !strings.Contains(r.Regex, `|\b(`), entropy: r.Entropy,
			long:  strings.HasPrefix(r.ID, "curl-") || strings.HasPrefix(r.ID, "private-key"),
			regex: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(r.Regex) })}
		if r.ID == "jwt" {
			one.keywords = []string{"eyj"} // "ey" is in many words; a header is {"alg": or the like
		}
		for _, l := range r.Allowlists {
			if l.Condition == "" && (len(l.Regexes) > 0 || len(l.StopWords) > 0) {
				one.allowed = append(one.allowed, l.compiled())
			}
		}
		set.rules = append(set.rules, one)
	}
	set.index = newKeywordIndex(set.rules)
	return set
})

func (l listText) compiled() allowlist {
	return allowlist{target: l.RegexTarget, stops: l.StopWords, regex: sync.OnceValue(func() (out []*regexp.Regexp) {
		for _, r := range l.Regexes {
			out = append(out, regexp.MustCompile(r))
		}
		return out
	})}
}

func (l *allowlist) allows(secret, match, line string) bool {
	text := secret
	switch l.target {
	case "match":
		text = match
	case "line":
		text = line
	}
	if slices.ContainsFunc(l.regex(), func(r *regexp.Regexp) bool { return r.MatchString(text) }) {
		return true
	}
	low := ""
	return len(l.stops) > 0 && slices.ContainsFunc(l.stops, func(s string) bool {
		if low == "" {
			low = strings.ToLower(secret)
		}
		return strings.Contains(low, s)
	})
}

// find appends what the rule finds in window, a part of a text that begins at offset there.
func (r *rule) find(window string, offset int, none *allowlist, found []span) []span {
	for at := 0; at < len(window); {
		m := r.regex().FindStringSubmatchIndex(window[at:])
		if m == nil {
			return found
		}
		from, to := m[0]+at, m[1]+at
		s := span{from, to}
		for g := 1; 2*g < len(m); g++ {
			if m[2*g] >= 0 && (r.group == 0 || g == r.group) && m[2*g+1] > m[2*g] {
				s = span{m[2*g] + at, m[2*g+1] + at}
				break
			}
		}
		secret := window[s.from:s.to]
		if (r.entropy == 0 || entropy(secret) > r.entropy) && !isDigest(window[:s.from]) &&
			!none.allows(secret, window[from:to], "") &&
			!slices.ContainsFunc(r.allowed, func(l allowlist) bool {
				return l.allows(secret, window[from:to],
					lineOf(window, from, to))
			}) {
			found = append(found, span{s.from + offset, s.to + offset})
		}
		at = max(s.to, at+1) // what ends one may begin the next
	}
	return found
}

// isDigest reports whether text ends in what says that a digest follows.
func isDigest(text string) bool {
	text = strings.ToLower(text[max(0, len(text)-9):])
	return slices.ContainsFunc([]string{"sha1", "sha256", "sha384", "sha512", "md5"}, func(name string) bool {
		return strings.HasSuffix(strings.TrimRight(text, "-:= \"'"), name)
	}) || strings.HasSuffix(text, "h1:")
}

func lineOf(text string, from, to int) string {
	start := strings.LastIndexByte(text[:from], '\n') + 1
	if end := strings.IndexByte(text[to:], '\n'); end >= 0 {
		return text[start : to+end]
	}
	return text[start:]
}

// entropy is Shannon's, in bits a character.
func entropy(text string) (bits float64) {
	var counts [256]int
	for i := 0; i < len(text); i++ {
		counts[text[i]]++
	}
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(text))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
