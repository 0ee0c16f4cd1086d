package secret

import (
	"regexp"
	"slices"
	"strings"
)

// endings are ends of names whose values are secret, in lower case and without separators:
// db_password, githubToken.
var endings = strings.Fields(`password passwd passphrase secret token apikey privatekey secretkey accesskey
	accountkey signingkey encryptionkey masterkey sshkey authorization cookie credential credentials
	connectionstring`)

// lastWords are last words of names whose values are secret. Other words end so, too: spin, hotspot.
var lastWords = set("secrets cookies pwd pin cvv cvc otp totp jwt dsn")

// wholeNames are names whose values are secret. Longer names that end so say nothing.
var wholeNames = set("pass sig bearer mfacode pincode")

// passwords are the names among them whose values can be short, and can be numbers.
var passwords = set("passwd pwd otp totp mfacode pincode cvv cvc")

// signing are last words of what signs a request in. In an address, a header or an option that is a
// secret. Elsewhere it is one if it is random.
var signing = set("signature sig hmac auth sid session sessionid assertion bearer pat pw")

// keys are endings of other names whose values are secret if they are random.
var keys = []string{"key", "auth", "cred", "pass"}

// usual are parts of names whose values usually are secrets.
var usual = strings.Fields("key token secret passw pwd auth cred cookie private dsn databaseurl webhookur")

// harmless are names that end like one of a secret, and have none.
var harmless = set(`nexttoken pagetoken nextpagetoken continuationtoken synctoken nextsynctoken progresstoken
	prevpagetoken previouspagetoken pagingtoken cursortoken starttoken tokenizertoken eostoken bostoken padtoken
	stoptoken hassecret ispassword bypass compass encompass`)

func set(words string) map[string]bool {
	all := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		all[word] = true
	}
	return all
}

// words returns name in lower case and without separators, which buffer holds, and its last word:
// "token" of apiToken and of API_TOKEN.
func words(name string, buffer *[64]byte) (all, last string) {
	name = name[max(0, len(name)-len(buffer)):]
	n, begin := 0, 0
	for i := range len(name) {
		c, upper := name[i], name[i] >= 'A' && name[i] <= 'Z'
		if strings.IndexByte("_-. []", c) >= 0 {
			continue
		}
		if i > 0 && (strings.IndexByte("_-. []", name[i-1]) >= 0 || upper && !(name[i-1] >= 'A' && name[i-1] <= 'Z')) {
			begin = n
		}
		if upper {
			c += 'a' - 'A'
		}
		buffer[n] = c
		n++
	}
	return asText(buffer[:n]), asText(buffer[begin:n])
}

func endsIn(name string, endings []string) bool {
	return slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(name, e) })
}

// Name reports whether an argument, a member, a variable or a header of that name holds a secret,
// whatever its value looks like.
func Name(name string) bool {
	always, _ := readName(name)
	return always
}

// readName reports whether values of that name are always secret, and whether they are if they are
// random: stripe_key, basic-auth. The second holds for all that Parameter knows besides Name.
func readName(name string) (always, ifRandom bool) {
	var buffer [64]byte
	all, last := words(name, &buffer)
	always = !harmless[all] && (wholeNames[all] || lastWords[last] || endsIn(all, endings))
	return always, signing[last] || endsIn(all, keys)
}

// Parameter reports whether a parameter of an address, a header or an option of that name holds a
// secret. Addresses are signed, too. Of a bare "key" its value says more, see Token.
func Parameter(name string) bool {
	var buffer [64]byte
	all, last := words(name, &buffer)
	return Name(name) || !harmless[all] && (signing[last] || strings.HasSuffix(all, "pass"))
}

// Variable reports whether a variable, or an entry of a config, of that name usually holds a
// secret. Names like MAX_TOKENS are among them: so it is for callers that would rather mask too
// much.
func Variable(name string) bool {
	var buffer [64]byte
	all, _ := words(name, &buffer)
	return Parameter(name) || slices.ContainsFunc(usual, func(part string) bool { return strings.Contains(all, part) })
}

// Token reports whether text may be a token: long, in one piece, and of letters and digits.
func Token(text string) bool {
	digits := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			digits++
		case !isBase64(c) && c != '%' && c != '=' || c == '/':
			return false
		}
	}
	return len(text) >= 20 && digits > 0 && text[0] != '-'
}

// isPassword reports whether values of that name are secret however short they are.
func isPassword(name string) bool {
	var buffer [64]byte
	all, _ := words(name, &buffer)
	return passwords[all] || strings.HasSuffix(all, "password") || strings.HasSuffix(all, "passphrase")
}

// random reports whether value looks like nothing that a person has chosen.
func random(value string) bool {
	return len(value) >= 16 && len(value) < maxValue && strings.ContainsAny(value, "0123456789") &&
		!strings.ContainsAny(value, " \t\n/:") &&
		entropy(value) > 3.5
}

// secretMember reports whether value is a secret because a member, header or variable of that name has it.
func secretMember(name, value string) bool {
	always, ifRandom := readName(name)
	switch {
	case name == "" || value == "":
		return false
	case !always:
		return ifRandom && random(value) && !placeholder(value)
	case placeholder(value):
		return false
	case isPassword(name):
		return strings.Count(value, " ") < 4 // not a sentence about passwords
	case endsIn(strings.ToLower(name), headers):
		return len(value) >= 6 && !placeholder(value[strings.LastIndexByte(value, ' ')+1:])
	}
	return len(value) >= 8 && !strings.ContainsAny(value, " \t\n")
}

// headers end the names of headers that sign a request in.
var headers = []string{"authorization", "cookie"}

// stands matches what stands for a value and is none.
var stands = regexp.MustCompile(`^(?:[A-Z][A-Z_]{4,}|(?i:\$\{?[\w:.-]+\}?|<[^<>]*>|\{\{.*\}\}|` +
	`%\w+%|\*+|x{3,}|\.{3,}|…|` +
	`\[(?:masked|redacted|hidden|filtered|removed)[^\]]*\]|` +
	`null|none|nil|bearer|basic|digest|negotiate|undefined|true|false|string|str|text|` +
	`changeme|example|placeholder|redacted|hidden|required|optional|` +
	`your[-_ ].*|enter[-_ ].*|process\.env\.\w+|os\.environ.*|(?:secrets?|env|vars|config|settings)\.[\w.]+))$`)

func placeholder(value string) bool { return stands.MatchString(strings.TrimSpace(value)) }

var (
	// authorization and cookie find what signs a request in, as it stands in a request, in a log or
	// in a command, behind their names.
	authorization = regexp.MustCompile(`(?i)^["']?\s*[:=]\s*["']?(?:(?:` +
		`bearer|basic|token|apikey|digest|negotiate|aws4-hmac-sha256)\s+)?` +
		"([^\\s\"'`,;<>(){}$]{6,})")
	cookie = regexp.MustCompile(`^["']?\s*:\s*["']?([\w.-]{1,64}=[^\r\n"']{4,})`)
	bearer = regexp.MustCompile(`^\s+([\w~+/.=-]{16,})`)
)

// named finds the value that belongs to word, one of ownWords, which stands in text at i.
func named(text string, i int, word string, found []span) []span {
	end := i + len(word)
	re := map[string]*regexp.Regexp{"authorization": authorization, "cookie": cookie, "bearer": bearer}[word]
	if re == nil {
		return assigned(text, i, end, found)
	}
	if at := re.FindStringSubmatchIndex(text[end:]); at != nil && !placeholder(text[end+at[2]:end+at[3]]) {
		return append(found, span{end + at[2], end + at[3]})
	}
	return found
}

// nameAround is where the name is that text[i:end] is a word in.
func nameAround(text string, i, end int) (from, to int) {
	for from = i; from > 0 && i-from < maxName && isName(text[from-1]); from-- {
	}
	for to = end; to < len(text) && to-end < maxName && isName(text[to]); to++ {
	}
	return from, to
}

// assigned finds the value of NAME=value, "name": "value" and --name value, where text[i:end] is a word in the name.
func assigned(text string, i, end int, found []span) []span {
	from, to := nameAround(text, i, end)
	name := strings.TrimLeft(text[from:to], "-.")
	if always, ifRandom := readName(name); !always && !ifRandom {
		return found
	}
	p := to
	if p < len(text) && strings.IndexByte("\"'`", text[p]) >= 0 {
		p++
	}
	sign := skipSpaces(text, p)
	switch rest := text[sign:]; {
	case strings.HasPrefix(rest, ":=") || strings.HasPrefix(rest, "=>"):
		sign += 2
	case strings.HasPrefix(rest, "=") || strings.HasPrefix(rest, ":") && !strings.HasPrefix(rest, "://"):
		sign++
	case strings.HasPrefix(text[from:], "--") && p == to && sign > p: // an option
	default:
		return found
	}
	start := skipSpaces(text, sign)
	if start == len(text) {
		return found
	}
	quote := text[start]
	quoted := quote == '"' || quote == '\'' || quote == '`'
	var stop int
	if quoted {
		start++
		stop = strings.IndexAny(text[start:min(len(text), start+maxValue)], string(quote)+"\r\n")
	} else {
		stop = strings.IndexAny(text[start:min(len(text), start+maxValue)], " \t\r\n\"'`,;&|()<>{}[]")
	}
	if stop < 0 {
		stop = min(len(text)-start, maxValue)
	}
	value := text[start : start+stop]
	if len(value) == maxValue || !secretMember(name, value) || !quoted && (len(value) < 4 || looksLikeCode(value)) ||
		start+stop < len(text) && !quoted && strings.IndexByte("([{", text[start+stop]) >= 0 {
		return found
	}
	return append(found, span{start, start + stop})
}

func isName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

// skipSpaces returns the index behind up to three spaces or tabs.
func skipSpaces(text string, i int) int {
	for n := 0; n < 3 && i < len(text) && (text[i] == ' ' || text[i] == '\t'); n++ {
		i++
	}
	return i
}

// looksLikeCode reports whether a value without quotes is rather a word, a type or an expression than a secret.
func looksLikeCode(value string) bool {
	letters, others := 0, 0
	for i := 0; i < len(value); i++ {
		switch c := value[i] | 0x20; {
		case c >= 'a' && c <= 'z' || value[i] == '_' || value[i] == '.':
			letters++
		default:
			others++
		}
	}
	return others == 0 || letters == 0 && len(value) < 6 || value[0] == '/' || value[0] == '$' ||
		strings.HasPrefix(value, "./")
}
