package secret_test

import (
	"encoding/base64"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
)

// token is shaped like one of GitHub's. It stands nowhere in one piece, so that no other scanner
// takes this file for a leak.
var token = "ghp_" + strings.Repeat("a1B2c3D4e", 4)

func TestJSON(t *testing.T) {
	t.Parallel()
	m := secret.New([]byte("key"))
	hunter, pin := m.Mark("hunter2"), m.Mark("1234")
	atlassian, value := "ATATT3"+strings.Repeat("xFf3GF0aZ9_bQ7-", 13)[:186], "q8Zr2Wm5Tx9Kd4Vn7Bp1"
	for _, c := range []struct {
		in, out string
		at      []string
	}{
		{in: `{"b":1, "a":12345678901234567890,"password" : "hunter2"}`,
			out: `{"b":1, "a":12345678901234567890,"password" : "` + hunter + `"}`},
		{in: `{"otp":1234,"count":1234}`, out: `{"otp":"` + pin + `","count":1234}`},
		{in: `{"headers":[{"name":"X-Api-Password","value":"hunter2"}]}`,
			out: `{"headers":[{"name":"X-Api-Password","value":"` + hunter + `"}]}`},
		{in: `{"env":["DB_PASSWORD=hunter2","A=b"]}`, out: `{"env":["DB_PASSWORD=` + hunter + `","A=b"]}`},
		{in: `{"text":"{\"passwd\":\"hunter2\"}"}`, out: `{"text":"{\"passwd\":\"` + hunter + `\"}"}`},
		{in: `{"url":"https://ann:hunter2@example.com/x"}`, out: `{"url":"https://ann:` + hunter + `@example.com/x"}`},
		{in: `{"cmd":"curl --token ` + token + ` x"}`, out: `{"cmd":"curl --token ` + m.Mark(token) + ` x"}`},
		{in: `{"a":"use ` + atlassian + ` there"}`, out: `{"a":"use ` + m.Mark(atlassian) + ` there"}`},
		{in: `{"a":"api key\n: ` + value + `; api key\nref: ` + value + ` x"}`,
			out: `{"a":"api key\n: ` + m.Mark(value) + `; api key\nref: ` + value + ` x"}`},
		{in: `"\u0067hp_` + token[4:] + `"`, out: `"` + m.Mark(token) + `"`},
		{in: `{"a":{"b":[{"ssn":"078-05-1120"},{"ssn":7}]}}`, at: []string{"/a/b/*/ssn"},
			out: `{"a":{"b":[{"ssn":"` + m.Mark("078-05-1120") + `"},{"ssn":"` + m.Mark("7") + `"}]}}`},
		{in: `{"a~/b":"x","c":"x"}`, at: []string{"/a~0~1b"}, out: `{"a~/b":"` + m.Mark("x") + `","c":"x"}`},
		{in: `{"password":"` + hunter + `"}`},
		{in: `{"password":"","token":"${env:TOKEN}","secret":null,"nextPageToken":"CAUQAA12345678","authorization":"Bearer $TOKEN"}`},
		{in: `{"properties":{"password":{"type":"string","description":"the password of the user, at least 8 characters"}}}`},
		{in: `{"text":"A token is four characters. The key: value pairs of a session have no secret = none."}`},
		{in: `{"digest":"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","id":"7c9e6679-7425-40de-944b-e07fc1f90ae7"}`},
	} {
		out, n := m.JSON([]byte(c.in), c.at...)
		want := c.out
		if want == "" {
			want = c.in
		}
		if string(out) != want || (n > 0) != (c.out != "") {
			t.Errorf("%s\nis    %s (%d)\nwants %s", c.in, out, n, want)
		}
	}
}

// TestMarks checks that equal secrets have equal marks, others have others, and that the key counts.
func TestMarks(t *testing.T) {
	t.Parallel()
	a, b := secret.New([]byte("a")), secret.New([]byte("b"))
	again := secret.New([]byte("a"))
	if a.Mark("x") != again.Mark("x") || a.Mark("x") == a.Mark("y") || a.Mark("x") == b.Mark("x") ||
		secret.New(nil).Mark("x") != "[masked]" {
		t.Error(a.Mark("x"), a.Mark("y"), b.Mark("x"))
	}
}

// TestLog checks that neither messages nor attributes of any kind bring a secret into a log.
func TestLog(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	log := slog.New(secret.New(nil).Handler(slog.NewTextHandler(&out, nil)))
	log = log.With("before", "password=hunter2").WithGroup("g")
	log.Info("for "+token, "password", "hunter2", "error", errors.New("https://ann:hunter2@h"), "list",
		[]string{"pwd=hunter2"}, "n", 7,
		slog.Group("inner", "text", "passphrase: 'hunter2'"))
	if text := out.String(); strings.Contains(text, "hunter2") || strings.Contains(text, token) ||
		strings.Count(text, "[masked]") != 6 || !strings.Contains(text, "g.n=7") {
		t.Error(text)
	}
}

// FuzzJSON checks that JSON stays JSON, that nothing is found twice, and that what is found in a
// text is found in a string.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"password":"x","a":[1,{"b":"c"}]}`, `"https://a:b@c"`, `{"token":"` + token + `"}`,
		`[" AUTHORIZATION: Basic YTpiYzpkZWZnaA=="]`,
		`"{\"pwd\":\"\\u0041bc\"}"`, `"%3Apassword%3Dabcdef1"`,
	} {
		f.Add(seed)
	}
	m := secret.New([]byte("key"))
	f.Fuzz(func(t *testing.T, text string) {
		masked, n := m.Text(text)
		if n == 0 && masked != text {
			t.Fatalf("%q became %q", text, masked)
		}
		if quoted, k := m.JSON(rawjson.Quote(text)); strings.ToValidUTF8(text, "") == text && (n > 0) != (k > 0) ||
			!rawjson.Valid(quoted) {
			t.Fatalf("%q: %d in the text, %d in the string %s", text, n, k, quoted)
		}
		if !rawjson.Valid([]byte(text)) {
			return
		}
		once, n := m.JSON([]byte(text))
		if !rawjson.Valid(once) || n == 0 && string(once) != text {
			t.Fatalf("%s became %s", text, once)
		}
	})
}

// BenchmarkJSON masks what has no secrets: 1 kB of arguments, and 16 KiB of text.
func BenchmarkJSON(b *testing.B) {
	const prose = `Rename the helper in internal/parser/lexer.go and update its callers. The function nextToken(s string) (kind int, err error)
is called from Parse and from the tests. Keep the order of the cases: if c == '"' && depth > 0 { return stringLiteral, nil }. See also
https://github.com/example/project/pull/1234#discussion_r987654 and commit 7c9e66797425de40. Ask for a review by 2026-11-24T15:43:56Z. `
	m := secret.New([]byte("key"))
	for name, n := range map[string]int{"1kB": 1000, "16KiB": 16 << 10} {
		raw := []byte(`{"text":` + string(rawjson.Quote(strings.Repeat(prose, 50)[:n])) + `}`)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, n := m.JSON(raw); n > 0 {
					b.Fatal(n)
				}
			}
		})
	}
}

// The look at the beginning of an encoded text may end within a character.
func TestEncodedTextBeginsWithAnyCharacter(t *testing.T) {
	t.Parallel()
	for _, begins := range []string{"the key of my bank", "the key of my 银行银行", "der Schlüssel üüüü",
		"1234567890abcdefgä"} {
		for n := range 4 {
			text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", n) + begins + ": " + token))
			if _, found := secret.New(nil).Text(text); found != 1 {
				t.Errorf("%d secrets found in %s, which is %q behind %d characters", found, text, begins, n)
			}
		}
	}
}

// What was masked in one place is masked in others, too, whatever its form.
func TestLearn(t *testing.T) {
	t.Parallel()
	m := secret.New([]byte("key"))
	masked, learned := m.Learn([]byte(`{"login":"ann","pw":"open \"sesame\"","pin":1234,"number":12345678}`), false,
		"/pw", "/pin", "/number")
	if strings.Contains(string(masked), "sesame") || strings.Contains(string(masked), "1234") {
		t.Errorf("masked is %s", masked)
	}
	for text, want := range map[string]int{
		`the password is not open "sesame": ask ann`: 1, `open "sesame", open "sesame"`: 2,
		`{"says":"not open \"sesame\""}`: 1,
		`{"12345678":[12345678]}`:        1, "1234 is short": 0, "ann": 0, "": 0,
	} {
		out, n := learned.Text(text)
		if _, before := m.Text(text); n != want || before != 0 || strings.Contains(out, "sesame") {
			t.Errorf("%s became %s with %d marks, and %d without what was learned", text, out, n, before)
		}
	}
	if _, same := m.Learn([]byte(`{"a":"b"}`), false); same != m {
		t.Error("something was learned of nothing")
	}
}

func TestNamesOfMembers(t *testing.T) {
	t.Parallel()
	out, n := secret.New(nil).JSON([]byte(`{"a":1, "` + token + `" : {"password":"xyzzy"}, "api_key":"short"}`))
	if want := `{"a":1, "[masked]" : {"password":"[masked]"}, "api_key":"short"}`; string(out) != want || n != 2 {
		t.Errorf("%d: %s, want %s", n, out, want)
	}
}

// TestKnown: a known secret is masked wherever it is, also one that is added later, and nothing else is.
func TestKnown(t *testing.T) {
	t.Parallel()
	var known secret.Known
	m := known.Masker(nil)
	const raw = `{"colour":"deep \"blue\" sea","n":4711000,"magenta":["a magenta b"],"m":47110001}`
	if got, n := m.JSON([]byte(raw)); n != 0 || string(got) != raw {
		t.Errorf("without secrets: %s, %d", got, n)
	}
	known.Add(`deep "blue"`, "magenta", "4711000")
	const want = `{"colour":"[masked] sea","n":"[masked]","magenta":["a [masked] b"],"m":47110001}`
	if got, n := m.JSON([]byte(raw)); n != 3 || string(got) != want {
		t.Errorf("%s, %d\nwant %s", got, n, want)
	}
	if got, n := m.Text("magenta, bWFnZW50YSBpcyBhIGNvbG91ciB0aGF0"); n != 2 || got != "[masked], [masked]" {
		t.Errorf("%s, %d", got, n)
	}
	if got, learned := m.Learn([]byte(`{"x":"magenta"}`), false); string(got) != `{"x":"[masked]"}` {
		t.Errorf("%s", got)
	} else if text, _ := learned.Text(`deep "blue" and magenta`); text != "[masked] and [masked]" {
		t.Errorf("learned: %s", text)
	}
}

// TestNames: a name says whether it is that of a secret, by its words. What it says of one leads to
// a look at the text that holds it.
func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"password": "NPV", "db_password": "NPV", "DB_PASSWORD": "NPV", "githubToken": "NPV", "X-Api-Key": "NPV",
		"apiKey": "NPV", "API_KEY": "NPV",
		"accessToken": "NPV", "Authorization": "NPV", "Set-Cookie": "NPV", "password[]": "NPV", "dsn": "NPV",
		"SENTRY_DSN": "NPV", "pin": "NPV",
		"cardPin": "NPV", "idJWT": "NPV", "secrets": "NPV", "AWS_SECRET_ACCESS_KEY": "NPV", "X-Amz-Credential": "NPV",
		"sig": "NPV", "pass": "NPV",
		"X-Amz-Signature": "PV", "sid": "PV", "GITHUB_PAT": "PV", "smtp-pw": "PV", "auth": "PV", "hmac": "PV",
		"dbpass": "PV", "user_pass": "PV",
		"key": "V", "stripe_key": "V", "MAX_TOKENS": "V", "AUTH_MODE": "V", "DATABASE_URL": "V", "webhook-uri": "V",
		"private": "V", "tokens": "V",
		"path": "", "pattern": "", "spin": "", "inside": "", "pinned": "", "page": "", "next_page_token": "V",
		"pageToken": "V", "passenger": "", "": "",
	} {
		got := ""
		for i, is := range []func(string) bool{secret.Name, secret.Parameter, secret.Variable} {
			if is(name) {
				got += "NPV"[i : i+1]
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
		for _, text := range []string{`{"` + name + `":"x1"}`, `"a\n` + name + `: x1"`} {
			masked, _ := secret.New(nil).Learn([]byte(text), false)
			if strings.Contains(want, "N") && text[0] == '{' && string(masked) != `{"`+name+`":"[masked]"}` ||
				want == "" && string(masked) != text {
				t.Errorf("%s became %s", text, masked)
			}
		}
	}
	if n := testing.AllocsPerRun(100, func() { secret.Variable("some_usualPath") }); n > 0 {
		t.Errorf("a name that is none takes %v allocations", n)
	}
}
