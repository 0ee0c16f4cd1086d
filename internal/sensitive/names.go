package sensitive

import (
	"regexp"
	"strings"
)

// wellKnown are names whose values are secret, in lower case and without separators.
var wellKnown = map[string]bool{
	"password": true, "passwd": true, "pwd": true, "passphrase": true, "pass": true, "pgpassword": true, "userpassword": true,
	"secret": true, "clientsecret": true, "secretkey": true, "secretaccesskey": true, "sharedsecret": true, "signingsecret": true,
	"signingkey": true, "encryptionkey": true, "masterkey": true, "privatekey": true, "sshkey": true, "apikey": true, "xapikey": true,
	"apisecret": true, "appsecret": true, "token": true, "apitoken": true, "accesstoken": true, "refreshtoken": true, "idtoken": true,
	"authtoken":  true,
	"xauthtoken": true, "sessiontoken": true, "securitytoken": true, "bearertoken": true, "bearer": true, "bottoken": true,
	"authorization": true, "proxyauthorization": true, "cookie": true, "setcookie": true, "credential": true, "credentials": true,
	"connectionstring": true, "accountkey": true, "accesskey": true, "otp": true, "totp": true, "mfacode": true, "pincode": true,
	"cvv": true, "cvc": true, "sig": true, "jwt": true,
}

// passwords are the names among them whose values can be short, and can be numbers.
var passwords = map[string]bool{
	"password": true, "passwd": true, "pwd": true, "passphrase": true, "pgpassword": true, "userpassword": true, "otp": true, "totp": true,
	"mfacode": true, "pincode": true, "cvv": true, "cvc": true,
}

// suffixes end names whose values are secret: db_password, githubToken.
var suffixes = []string{"password", "passwd", "passphrase", "clientsecret", "apikey", "privatekey", "secretkey", "accesskey", "secret", "token"}

// harmless are names that end so and hold none.
var harmless = map[string]bool{
	"nexttoken": true, "pagetoken": true, "nextpagetoken": true, "continuationtoken": true, "synctoken": true, "nextsynctoken": true,
	"progresstoken": true, "prevpagetoken": true, "previouspagetoken": true, "pagingtoken": true, "cursortoken": true, "starttoken": true,
	"tokenizertoken": true, "eostoken": true, "bostoken": true, "padtoken": true, "stoptoken": true, "hassecret": true, "ispassword": true,
}

// normal is name in lower case, without separators.
func normal(name string) string {
	var b strings.Builder
	for i := 0; i < len(name) && i < 64; i++ {
		switch c := name[i]; {
		case c >= 'A' && c <= 'Z':
			b.WriteByte(c + 'a' - 'A')
		case c == '_' || c == '-' || c == ' ' || c == '.':
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// isSecretName reports whether values of that name are secret.
func isSecretName(name string) bool {
	n := normal(name)
	if wellKnown[n] {
		return true
	}
	if harmless[n] {
		return false
	}
	for _, s := range suffixes {
		if strings.HasSuffix(n, s) {
			return true
		}
	}
	return false
}

// isPassword reports whether values of that name are secret however short they are.
func isPassword(name string) bool {
	n := normal(name)
	return passwords[n] || strings.HasSuffix(n, "password") || strings.HasSuffix(n, "passphrase")
}

// isKeyName reports whether values of that name are secret if they are random: stripe_key, basic-auth.
func isKeyName(name string) bool {
	n := normal(name)
	return strings.HasSuffix(n, "key") || strings.HasSuffix(n, "auth") || strings.HasSuffix(n, "cred")
}

// random reports whether value looks like nothing that a person has chosen.
func random(value string) bool {
	return len(value) >= 16 && len(value) < maxValue && strings.ContainsAny(value, "0123456789") && !strings.ContainsAny(value, " \t\n/:") &&
		entropy(value) > 3.5
}

// secretMember reports whether value is a secret because a member, header or variable of that name has it.
func secretMember(name, value string) bool {
	switch {
	case name == "" || value == "":
		return false
	case !isSecretName(name):
		return isKeyName(name) && random(value) && !placeholder(value)
	case placeholder(value):
		return false
	case isPassword(name):
		return strings.Count(value, " ") < 4 // not a sentence about passwords
	case strings.HasSuffix(normal(name), "authorization"), strings.HasSuffix(normal(name), "cookie"):
		return len(value) >= 6 && !placeholder(value[strings.LastIndexByte(value, ' ')+1:])
	}
	return len(value) >= 8 && !strings.ContainsAny(value, " \t\n")
}

// stands matches what stands for a value and is none.
var stands = regexp.MustCompile(`^(?:[A-Z][A-Z_]{4,}|(?i:\$\{?[\w:.-]+\}?|<[^<>]*>|\{\{.*\}\}|%\w+%|\*+|x{3,}|\.{3,}|…|` +
	`\[(?:masked|redacted|hidden|filtered|removed)[^\]]*\]|` +
	`null|none|nil|bearer|basic|digest|negotiate|undefined|true|false|string|str|text|` +
	`changeme|example|placeholder|redacted|hidden|required|optional|` +
	`your[-_ ].*|enter[-_ ].*|process\.env\.\w+|os\.environ.*|(?:secrets?|env|vars|config|settings)\.[\w.]+))$`)

func placeholder(value string) bool { return stands.MatchString(strings.TrimSpace(value)) }

var (
	// authorization and cookie find what signs a request in, as it stands in a request, in a log or in a command, behind their names.
	authorization = regexp.MustCompile(`(?i)^["']?\s*[:=]\s*["']?(?:(?:bearer|basic|token|apikey|digest|negotiate|aws4-hmac-sha256)\s+)?` +
		"([^\\s\"'`,;<>(){}$]{6,})")
	cookie = regexp.MustCompile(`^["']?\s*:\s*["']?([\w.-]{1,64}=[^\r\n"']{4,})`)
	bearer = regexp.MustCompile(`^\s+([\w~+/.=-]{16,})`)
)

// named finds the value that belongs to word, one of ownWords, which stands in text at i.
func named(text string, i int, word string, found []span) []span {
	end := i + len(word)
	behind := text[end:]
	re := map[string]*regexp.Regexp{"authorization": authorization, "cookie": cookie, "bearer": bearer}[word]
	switch {
	case word == "://":
		return login(text, end, found)
	case re != nil:
		if at := re.FindStringSubmatchIndex(behind); at != nil && !placeholder(behind[at[2]:at[3]]) {
			return append(found, span{end + at[2], end + at[3]})
		}
		return found
	}
	return assigned(text, i, end, found)
}

// login finds the password of an address whose host, or who signs in there, begins at i.
func login(text string, i int, found []span) []span {
	rest := text[i:min(len(text), i+512)]
	at := strings.IndexAny(rest, "@/?# \t\r\n\"'<>")
	colon := strings.IndexByte(rest, ':')
	if at < 0 || rest[at] != '@' || colon < 0 || colon >= at-1 || placeholder(rest[colon+1:at]) {
		return found
	}
	return append(found, span{i + colon + 1, i + at})
}

// assigned finds the value of NAME=value, "name": "value" and --name value, where text[i:end] is a word in the name.
func assigned(text string, i, end int, found []span) []span {
	from := i
	for from > 0 && i-from < maxName && isName(text[from-1]) {
		from--
	}
	to := end
	for to < len(text) && to-end < maxName && isName(text[to]) {
		to++
	}
	name := strings.TrimLeft(text[from:to], "-.")
	if !isSecretName(name) && !isKeyName(name) {
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
	return others == 0 || letters == 0 && len(value) < 6 || value[0] == '/' || value[0] == '$' || strings.HasPrefix(value, "./")
}
