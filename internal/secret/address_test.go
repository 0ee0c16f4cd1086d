package secret_test

import (
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
)

// Of an address only what is secret is masked: who is asked has to see the rest.
func TestText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://user:hunter2@host/a?b=c#d":                         "https://user:[masked]@host/a?b=c#d",
		"HTTPS://user:hunter2@host":                                 "HTTPS://user:[masked]@host",
		"postgres://app:hunter2@db:5432/x":                          "postgres://app:[masked]@db:5432/x",
		"jdbc:mysql://app:hunter2@db/x?password=hunter2":            "jdbc:mysql://app:[masked]@db/x?password=[masked]",
		"git clone https://me:hunter2@host/x.git dir":               "git clone https://me:[masked]@host/x.git dir",
		"https://a:hunter2@x/ and https://b:hunter2@y/":             "https://a:[masked]@x/ and https://b:[masked]@y/",
		"https://hunter2@host/":                                     "https://[masked]@host/",
		"https://hunter2:@host/":                                    "https://[masked]:@host/",
		"https://ghp_hunter2hunter2hunter2:x-oauth-basic@host/":     "https://[masked]:[masked]@host/",
		"https://user:hun@ter2@host/":                               "https://user:[masked]@host/",
		"https://user:hun/ter2@host/":                               "https://user:[masked]@host/",
		"https://user:hun?ter2@host/":                               "https://user:[masked]@host/",
		"https://user:a/" + strings.Repeat("b", 300) + "@host":      "https://user:a/" + strings.Repeat("b", 300) + "@host",
		"https://user:hunter2@[::1]:80/":                            "https://user:[masked]@[::1]:80/",
		"//user:hunter2@host/":                                      "//user:[masked]@host/",
		"/cwd/https:/user:hunter2@host/.env":                        "/cwd/https:/user:[masked]@host/.env",
		"https:///user:hunter2@host/":                               "https:///user:[masked]@host/",
		"ssh://git@host/x":                                          "ssh://git@host/x",
		"ssh://deploy@host/x":                                       "ssh://deploy@host/x",
		"https://git@host/x":                                        "https://git@host/x",
		"git@github.com:a/b":                                        "git@github.com:a/b",
		"https://host:8080/@scope/pkg@1.2":                          "https://host:8080/@scope/pkg@1.2",
		"https://host/user:x@y":                                     "https://host/user:x@y",
		"https://[::1]:80/a@b":                                      "https://[::1]:80/a@b",
		"mailto:ann@example.com":                                    "mailto:ann@example.com",
		"nginx:1.25@sha256:abc":                                     "nginx:1.25@sha256:abc",
		"https://host/?token=hunter2":                               "https://host/?token=[masked]",
		"https://host/?a=1&api_key=hunter2&b=2":                     "https://host/?a=1&api_key=[masked]&b=2",
		"https://host/?apiKey=hunter2;x=1&y=2":                      "https://host/?apiKey=[masked]&y=2",
		"https://host/?x=1;Access-Token=hunter2":                    "https://host/?x=1;Access-Token=[masked]",
		"https://host/#access_token=hunter2&x=1":                    "https://host/#access_token=[masked]&x=1",
		"https://host/?pass%77ord=hunter2":                          "https://host/?pass%77ord=[masked]",
		"https://host/?password[]=hunter2":                          "https://host/?password[]=[masked]",
		"https://host/?X-Amz-Signature=hunter2&X-Amz-Date=1":        "https://host/?X-Amz-Signature=[masked]&X-Amz-Date=1",
		"https://host/?X-Amz-Credential=hunter2&sig=hunter2":        "https://host/?X-Amz-Credential=[masked]&sig=[masked]",
		"https://host/?key=AIzahunter2hunter2hunter2":               "https://host/?key=[masked]",
		"https://host/?key=prod/db.sql":                             "https://host/?key=prod/db.sql",
		"https://host/?token=":                                      "https://host/?token=",
		"https://host/?token=hunter2\" next":                        "https://host/?token=[masked]\" next",
		"/login?password=hunter2":                                   "/login?password=[masked]",
		"https://host/?q=token&page=2":                              "https://host/?q=token&page=2",
		"https://host/?next=https%3A%2F%2Fx%2F%3Ftoken%3Dhunter2&y": "https://host/?next=https%3A%2F%2Fx%2F%3Ftoken%3D[masked]&y",
		"https://host/?next=https%3A%2F%2Fu%3Ahunter2%40x%2F":       "https://host/?next=https%3A%2F%2Fu%3A[masked]%40x%2F",
		"if (a && token=b) { x = y@z }":                             "if (a && token=b) { x = y@z }",
		"a = b // see user:x@y":                                     "a = b // see user:x@y",
		"":                                                          "",
		"=@?&//:":                                                   "=@?&//:",
	} {
		if got := secret.Text(text, false); got != want {
			t.Errorf("%q:\n%q, want\n%q", text, got, want)
		}
	}
}

// What may run is shown, be it where a secret could be.
func TestTextHidesNoCommand(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"curl https://u:hunter2@host/?token=hunter2": "curl https://u:[masked]@host/?token=[masked]",
		"curl http://h/?token=a;rm${IFS}x":           "curl http://h/?token=[masked];rm${IFS}x",
		"curl http://h/?token=a|sh":                  "curl http://h/?token=[masked]|sh",
		"curl http://h/?token=$(rm)":                 "curl http://h/?token=[masked](rm)",
		"curl http://h/?token=`rm`":                  "curl http://h/?token=`rm`",
		"curl https://u:;rm${IFS}-rf@h":              "curl https://u:;rm${IFS}-rf@h",
		"curl https://u:$(rm)@h":                     "curl https://u:$(rm)@h",
		"curl https://u:x/&&rm@h":                    "curl https://u:x/&&rm@h",
		"curl https://h/?next=%3Ftoken%3Da%3Brm":     "curl https://h/?next=%3Ftoken%3D[masked]%3Brm",
		"curl 'http://h/?token=hunter2'; rm -rf x":   "curl 'http://h/?token=[masked]'; rm -rf x",
		"fetch(\"http://h/?token=\" + run(\"x\"))":   "fetch(\"http://h/?token=\" + run(\"x\"))",
		"curl http://h/?token=a\nrm":                 "curl http://h/?token=[masked]\nrm",
		"curl https://u:hunter2@h/ && rm x":          "curl https://u:[masked]@h/ && rm x",
		"PASSWORD=\"$(rm)\" x":                       "PASSWORD=\"$(rm)\" x",
		"PASSWORD=`rm -rf` x":                        "PASSWORD=`rm -rf` x",
		"PASSWORD='a;b' x":                           "PASSWORD='[masked]' x",
		"curl -H Cookie:a=bcde;rm x":                 "curl -H Cookie:[masked];rm x",
		"curl -H 'Cookie: a=bcde; b=c'; rm x":        "curl -H 'Cookie: [masked]'; rm x",
		"curl -H Authorization:abcdef|sh":            "curl -H Authorization:[masked]|sh",
	} {
		if got := secret.Text(text, true); got != want {
			t.Errorf("%q:\n%q, want\n%q", text, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, text := range []string{"https://u:p@h/?token=x#y=z", "//:@/?=&;#%", "http:/u:p/q@h?next=%3Ftoken%3Dx", "a://b:c@d://e:f@g", "?token=?token=&token="} {
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, text string, command bool) {
		got := secret.Text(text, command)
		if got != text && !strings.Contains(got, secret.MarkStart) {
			t.Errorf("%q became %q, and nothing is masked", text, got)
		}
		if !command {
			return
		}
		signs := []string{"`", "$("}
		if !strings.ContainsAny(text, "\"'") {
			signs = append(signs, ";", "|", "(", "<")
		}
		for _, c := range signs { // nothing that begins a command is hidden
			if strings.Count(got, c) < strings.Count(text, c) {
				t.Errorf("%q became %q", text, got)
			}
		}
	})
}

// Masking takes time in proportion to the text. If it took the square of that, this would not end within the hour.
func TestTextIsLinear(t *testing.T) {
	t.Parallel()
	const length = 1 << 18
	for _, piece := range []string{"//a:b", "?a=b%3D", "?token", "//a:b@", "?key=a", "&a=%40", "/", "//:", "?=", "//a:b/@", "#token=", "//$(@"} {
		for _, command := range []bool{false, true} {
			secret.Text("@=?"+strings.Repeat(piece, length/len(piece))+";@", command)
		}
	}
}

func BenchmarkText(b *testing.B) {
	text := strings.Repeat("if (a?b=c&d=e) // https://user:hunter2@host/?token=hunter2\n", 200)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		secret.Text(text, false)
	}
}
