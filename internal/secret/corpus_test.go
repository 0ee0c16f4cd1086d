package secret_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
)

// corpus makes texts by the formats that services document. It knows no rule of the package.
type corpus struct{ rand *rand.Rand }

const (
	digits  = "0123456789"
	capital = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	small   = "abcdefghijklmnopqrstuvwxyz"
	hexes   = digits + "abcdef"
	base32  = capital + "234567"
	base62  = digits + capital + small
)

// of returns n random characters of an alphabet.
func (c corpus) of(alphabet string, n int) string {
	out := make([]byte, n)
	for i := range out {
		out[i] = alphabet[c.rand.IntN(len(alphabet))]
	}
	return string(out)
}

func (c corpus) uuid() string {
	return strings.Join([]string{c.of(hexes, 8), c.of(hexes, 4), c.of(hexes, 4), c.of(hexes, 4), c.of(hexes, 12)}, "-")
}

func (c corpus) bytes(n int) string {
	raw := make([]byte, n)
	for i := range raw {
		raw[i] = byte(c.rand.IntN(256))
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// kind is a kind of secret: how it looks, and the name that configurations and requests give it. bare says that it is known for what it
// is without that name.
type kind struct {
	name  string
	bare  bool
	value func() string
}

func (c corpus) kinds() []kind {
	of := c.of
	with := func(prefix, alphabet string, n int) func() string {
		return func() string { return prefix + of(alphabet, n) }
	}
	jwt := func() string {
		part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
		return part(`{"alg":"HS256","typ":"JWT"}`) + "." + part(`{"sub":"`+of(digits, 10)+`","name":"Ann","iat":1516239022}`) + "." + of(base62+"-_", 43)
	}
	return []kind{
		{"GITHUB_TOKEN", true, with("gh"+"p_", base62, 36)},
		{"GITHUB_APP_TOKEN", true, with("gh"+"s_", base62, 36)},
		{"GITHUB_OAUTH_TOKEN", true, with("gh"+"o_", base62, 36)},
		{"GITHUB_PAT", true, func() string { return "github" + "_pat_" + of(base62, 22) + "_" + of(base62, 59) }},
		{"GITLAB_TOKEN", true, with("gl"+"pat-", base62+"-", 20)},
		{"GITLAB_RUNNER_TOKEN", true, with("gl"+"rt-", base62+"_-", 20)},
		{"AWS_ACCESS_KEY_ID", true, with("AK"+"IA", base32, 16)},
		{"AWS_SECRET_ACCESS_KEY", false, with("", base62+"/+", 40)},
		{"GOOGLE_API_KEY", true, with("AI"+"za", base62+"_-", 35)},
		{"SLACK_BOT_TOKEN", true, func() string { return "xo" + "xb-" + of(digits, 12) + "-" + of(digits, 12) + "-" + of(base62, 24) }},
		{"SLACK_USER_TOKEN", true, func() string {
			return "xo" + "xp-" + of(digits, 12) + "-" + of(digits, 12) + "-" + of(digits, 12) + "-" + of(hexes, 32)
		}},
		{"SLACK_WEBHOOK", true, func() string {
			return "https://hooks." + "slack.com/services/T" + of(capital+digits, 8) + "/B" + of(capital+digits, 10) + "/" + of(base62, 24)
		}},
		{"STRIPE_KEY", true, with("sk"+"_live_", base62, 24)},
		{"STRIPE_RESTRICTED_KEY", true, with("rk"+"_live_", base62, 24)},
		{"STRIPE_WEBHOOK_SECRET", false, with("wh"+"sec_", base62, 32)},
		{"OPENAI_API_KEY", true, func() string { return "sk-" + of(base62, 20) + "T3Blbk" + "FJ" + of(base62, 20) }},
		{"ANTHROPIC_API_KEY", true, func() string { return "sk-" + "ant-api03-" + of(base62+"_-", 93) + "AA" }},
		{"HF_TOKEN", true, with("hf"+"_", capital+small, 34)},
		{"NPM_TOKEN", true, with("np"+"m_", base62, 36)},
		{"PYPI_TOKEN", true, with("pypi-"+"AgEIcHlwaS5vcmc", base62+"_-", 70)},
		{"DOCKER_PASSWORD", false, with("dckr"+"_pat_", base62+"_-", 27)},
		{"TWILIO_API_KEY", true, with("S"+"K", hexes, 32)},
		{"SENDGRID_API_KEY", true, func() string { return "S" + "G." + of(base62+"_-", 22) + "." + of(base62+"_-", 43) }},
		{"MAILGUN_API_KEY", false, with("key-", hexes, 32)},
		{"MAILCHIMP_API_KEY", false, func() string { return of(hexes, 32) + "-us12" }},
		{"DIGITALOCEAN_TOKEN", true, with("do"+"p_v1_", hexes, 64)},
		{"HEROKU_API_KEY", false, c.uuid},
		{"CLOUDFLARE_API_TOKEN", false, with("", base62+"_-", 40)},
		{"DATADOG_API_KEY", false, with("", hexes, 32)},
		{"NEW_RELIC_API_KEY", false, with("NR"+"AK-", capital+digits, 27)},
		{"SENTRY_AUTH_TOKEN", false, with("", hexes, 64)},
		{"GRAFANA_TOKEN", true, func() string { return "gl" + "sa_" + of(base62, 32) + "_" + of(hexes, 8) }},
		{"SHOPIFY_ACCESS_TOKEN", true, with("sh"+"pat_", hexes, 32)},
		{"SQUARE_ACCESS_TOKEN", true, with("sq0"+"atp-", base62+"_-", 22)},
		{"DISCORD_TOKEN", false, func() string { return "M" + of(base62, 23) + "." + of(base62, 6) + "." + of(base62+"_-", 27) }},
		{"TELEGRAM_BOT_TOKEN", false, func() string { return "1" + of(digits, 9) + ":AA" + of(base62+"_-", 33) }},
		{"LINEAR_API_KEY", true, with("lin"+"_api_", base62, 40)},
		{"NOTION_TOKEN", true, func() string { return "nt" + "n_" + of(digits, 11) + of(base62, 35) }},
		{"ATLASSIAN_API_TOKEN", true, func() string { return "AT" + "ATT3" + of(base62+"_-", 177) + "=" + of(hexes, 8) }},
		{"OKTA_API_TOKEN", false, with("00", base62+"_-", 40)},
		{"VAULT_TOKEN", true, with("hv"+"s.", base62+"_-", 95)},
		{"DATABRICKS_TOKEN", true, with("da"+"pi", hexes, 32)},
		{"TF_API_TOKEN", false, func() string { return of(base62, 14) + ".atlas" + "v1." + of(base62, 67) }},
		{"PULUMI_ACCESS_TOKEN", true, with("pu"+"l-", hexes, 40)},
		{"PLANETSCALE_TOKEN", true, with("pscale"+"_tkn_", base62+"_-", 43)},
		{"POSTMAN_API_KEY", true, func() string { return "PM" + "AK-" + of(hexes, 24) + "-" + of(hexes, 34) }},
		{"ID_TOKEN", true, jwt},
		{"SSH_PRIVATE_KEY", true, func() string {
			return "-----BEGIN RSA " + "PRIVATE KEY-----\n" + c.bytes(300) + "\n-----END RSA " + "PRIVATE KEY-----"
		}},
		{"AGE_KEY", true, with("AGE-SECRET-"+"KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)},
		{"AZURE_CLIENT_SECRET", true, func() string { return of(base62, 3) + "8Q" + "~" + of(base62+"_-", 34) }},
		{"ACCOUNT_KEY", false, func() string { return c.bytes(64) }},
		{"DB_PASSWORD", false, func() string { return of(base62, 4) + of("!%^*", 1) + of(base62, 5) }},
		{"SESSION_SECRET", false, with("", hexes, 48)},
		{"DATABASE_URL", true, func() string { return "postgres://app:" + of(base62, 14) + "@db.internal:5432/app" }},
		{"REDIS_URL", true, func() string { return "redis://default:" + of(base62, 20) + "@cache.internal:6379" }},
	}
}

// places are the texts that a secret stands in; those of what is known without a name come last.
func places(name, value string) (texts map[string]string) {
	quoted := func(v any) string {
		out, _ := json.Marshal(v)
		return string(out)
	}
	lower := strings.ToLower(name)
	texts = map[string]string{
		"nested JSON":      quoted(map[string]any{"service": map[string]any{"region": "eu-1", "env": []any{map[string]any{lower: value}}}}),
		"JSON in a string": quoted(map[string]any{"content": []any{map[string]any{"type": "text", "text": quoted(map[string]any{lower: value, "n": 1})}}}),
		"base64":           quoted(map[string]any{"data": base64.StdEncoding.EncodeToString([]byte("# settings\n" + name + "=" + value + "\nDEBUG=1\n"))}),
		"URL":              quoted("GET https://api.example.com/v1/items?limit=10&" + lower + "=" + url.QueryEscape(value) + "&page=2"),
	}
	if !strings.Contains(value, "\n") {
		texts["dotenv"] = quoted("# production\nLOG=info\nexport " + name + "=" + value + "\nPORT=8080\n")
		texts["YAML"] = quoted("service:\n  " + lower + ": \"" + value + "\"\n  replicas: 3\n")
		texts["header"] = quoted("> POST /v1/items HTTP/1.1\r\n> Host: api.example.com\r\n> Authorization: Bearer " + value + "\r\n> Accept: */*\r\n")
	}
	return texts
}

// TestCorpus measures what is found, and what is taken for a secret and is none.
func TestCorpus(t *testing.T) {
	t.Parallel()
	c := corpus{rand.New(rand.NewPCG(18, 300))}
	m := secret.New([]byte("key"))
	secrets, missed := 0, 0
	for _, k := range c.kinds() {
		for range 2 {
			value := k.value()
			texts := places(k.name, value)
			if k.bare && !strings.Contains(value, "\n") {
				texts["prose"] = `"I have put ` + value + ` into the settings, as you said."`
				texts["log"] = `"2026-11-24T10:00:00Z ERROR request failed id=42 cred ` + value + ` status=403"`
			}
			for place, text := range texts {
				secrets++
				masked, _ := m.JSON([]byte(text))
				core := value
				if u, err := url.Parse(value); err == nil && u.User != nil {
					core, _ = u.User.Password()
				}
				quoted, _ := json.Marshal(core)
				left := string(masked)
				found := left != text
				for _, written := range []string{core, strings.Trim(string(quoted), `"`), url.QueryEscape(core), base64.StdEncoding.EncodeToString([]byte("# settings\n"))} {
					found = found && !strings.Contains(left, written)
				}
				if !found {
					missed++
					t.Logf("missed: %s in %s: %.300s", k.name, place, left)
				}
			}
		}
	}
	harmless, wrong := c.lookalikes(), 0
	for _, text := range harmless {
		if masked, n := m.JSON([]byte(text)); n > 0 {
			wrong++
			t.Logf("wrong: %.300s", masked)
		}
	}
	t.Logf("%d of %d secrets of %d kinds found; %d of %d look-alikes taken for secrets", secrets-missed, secrets, len(c.kinds()), wrong, len(harmless))
	if len(c.kinds()) < 40 || secrets < 300 || len(harmless) < 300 || missed*100 > secrets*2 || wrong*100 > len(harmless)*2 {
		t.Error("that is not enough")
	}
}

// lookalikes are texts without secrets that look as if they had some, as JSON.
func (c corpus) lookalikes() (texts []string) {
	of := c.of
	add := func(format string, args ...any) {
		text, _ := json.Marshal(fmt.Sprintf(format, args...))
		texts = append(texts, string(text))
	}
	for range 8 {
		sha := of(hexes, 64)
		add("request %s failed after 3 tries", c.uuid())
		add("commit %s\nAuthor: Ann <ann@example.com>", of(hexes, 40))
		add("sha256:%s  app.tar.gz", sha)
		add("github.com/spf13/cobra v1.%d.0 h1:%s", c.rand.IntN(20), c.bytes(32))
		add("      \"integrity\": \"sha512-%s\",", c.bytes(64))
		add("checksum = \"%s\"", sha)
		add("FROM registry.example.com/app@sha256:%s AS build", sha)
		add("data:image/png;base64,iVBORw0KGgo%s", of(base62+"+/", 200))
		add("ETag: W/\"%s\"\r\nCache-Control: max-age=60", of(hexes, 32))
		add("traceparent: 00-%s-%s-01", of(hexes, 32), of(hexes, 16))
		add("inv_%s succeeded, res_%s is stored", of(digits+small, 26), of(digits+small, 26))
		add("{\"nextPageToken\":\"%s\",\"items\":[]}", of(base62, 44))
		add("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA%s ann@laptop", of(base62, 43))
		add("-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----", c.bytes(200))
		add("-----BEGIN PUBLIC KEY-----\n%s\n-----END PUBLIC KEY-----", c.bytes(90))
		add("https://example.com/orders/%s?utm_source=mail&ref=%s", c.uuid(), of(digits, 8))
		add("https://docs.example.com/d/1%s/edit#gid=%s", of(base62+"-_", 43), of(digits, 9))
		add("arn:aws:iam::%s:role/deploy-%s", of(digits, 12), of(small, 8))
		add("/home/ann/.cache/go-build/%s/%s-d", of(hexes, 2), of(hexes, 64))
		add("node_modules/.pnpm/lodash@4.17.%d/node_modules/lodash/index.js:%d:%d", c.rand.IntN(30), c.rand.IntN(900), c.rand.IntN(80))
		add("pod/api-%s-%s 1/1 Running 0 4d", of(hexes, 10), of(digits+small, 5))
		add("s3://logs-eu/2026/11/%02d/part-%s.parquet", c.rand.IntN(28), c.uuid())
		add("0x%s mined in block %s", of(hexes, 64), of(digits, 8))
		add("call +49 30 %s, IBAN on request, order %s", of(digits, 7), of(capital+digits, 10))
		add("#%s;color:#%s", of(hexes, 6), of(hexes, 3))
		add("M%s.%sC%s,%sZ", of(digits, 3), of(digits, 4), of(digits, 2), of(digits, 3))
		add("%s-%s.min.js", of(small, 8), of(hexes, 20))
		add("ISBN 978-%s-%s", of(digits, 5), of(digits, 4))
		add("PROJ-%s: rename get%sHandler to handle%s", of(digits, 4), of(capital, 1)+of(small, 7), of(capital, 1)+of(small, 9))
	}
	for _, text := range []string{
		"export TOKEN=$(cat token.txt)", "password: ${DB_PASSWORD}", "password = os.environ[\"DB_PASSWORD\"]", "api_key: <your api key>", "token: ****",
		"PASSWORD=changeme", "Authorization: Bearer $TOKEN", "Authorization: Bearer <token>", "curl -H \"Authorization: Bearer ${TOKEN}\" https://api.example.com",
		"the password must have at least 12 characters", "A token is about four characters of English.", "Forgot your password? Click here.",
		"func (s *Server) token(ctx context.Context) (string, error) {", "if err := checkPassword(user, given); err != nil {", "const maxTokens = 4096",
		"type Secret struct { Name string }", "password: str = Field(min_length=8)", "token := parser.next()", "key, ok := m[name]", "for key := range maps.Keys(all) {",
		"secretName: web-tls", "primary_key: id", "foreign key (user_id) references users(id)", "sort_key=created_at", "keyboard: us, keymap: intl",
		"def authenticate(token: str) -> User:", "const token = useToken();", "this.token = token;", "let secret = getSecret(name)", "tokenizer: cl100k_base",
		"max_tokens: 1024, stop_tokens: 3", "usage: {input_tokens: 1200, output_tokens: 340}", "author: Ann Example, authority: example.com",
		"bearer of bad news", "the cookie banner covers the page", "session ended after 30 minutes", "private: true, public: false", "csrf_token is missing",
		"passed 120, failed 0, skipped 3", "compass: 270 degrees", "bypass=false", "passenger: Ann", "PassThrough: yes", "encompass=all", "keystroke=Enter",
		"https://user@example.com/path", "ssh://git@github.com/example/project.git", "mailto:ann@example.com?subject=token", "redis://localhost:6379/0",
		"postgres://localhost:5432/app?sslmode=disable", "postgres://app@db.internal/app", "smtp://mail.example.com:587", "http://localhost:8080/?key=name",
		"{\"type\":\"object\",\"properties\":{\"password\":{\"type\":\"string\",\"format\":\"password\"}},\"required\":[\"password\"]}",
		"{\"token_type\":\"Bearer\",\"expires_in\":3600,\"scope\":\"read write\"}", "{\"password\":null,\"secret\":\"\",\"token\":\"<redacted>\"}",
		"{\"hasSecret\":true,\"secretCount\":3,\"passwordChangedAt\":\"2026-11-24T10:00:00Z\"}", "{\"key\":\"PROJ-1234\",\"fields\":{\"summary\":\"Token refresh fails\"}}",
		"{\"keys\":[{\"kty\":\"RSA\",\"use\":\"sig\",\"alg\":\"RS256\"}]}", "{\"name\":\"password\",\"in\":\"query\",\"required\":true}",
		"{\"pin\":\"false\",\"otp_required\":false}", "Set-Cookie was not sent", "--token-file /run/secrets/token", "--password-stdin", "-e PASSWORD -e TOKEN",
		"secrets: [db_password, api_key]", "valueFrom: {secretKeyRef: {name: db, key: password}}", "token: process.env.TOKEN,", "apiKey: config.apiKey,",
	} {
		add("%s", text)
	}
	return texts
}
