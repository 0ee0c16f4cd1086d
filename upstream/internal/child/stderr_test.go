package child

import (
	"strings"
	"testing"
)

// TestCauseIn: what launchers and runtimes write that tests cannot count on being installed.
func TestCauseIn(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		"npm error 404  'nothere@*' is not in this registry.": "npm warn Unknown user config \"x\". This failed before\nnpm error code E404\n" +
			"npm error 404 Not Found - GET https://registry.example/nothere - Not found\nnpm error 404\n" +
			"npm error 404  'nothere@*' is not in this registry.\nnpm error 404\n" +
			"npm error 404 Note that you can use a folder, url, or git folder.\nnpm error A complete log of this run can be found in: /x.log",
		"docker: Error response from daemon: pull access denied for x": "Unable to find image 'x' locally\n" +
			"docker: Error response from daemon: pull access denied for x\n\nRun 'docker run --help' for more information",
		"panic: runtime error: invalid memory address": "listening\npanic: runtime error: invalid memory address\n\ngoroutine 1 [running]:\n" +
			"main.main()\n/x/main.go:4 +0x20\nexit status 2",
		"Caused by: java.net.ConnectException: refused": "Exception in thread \"main\" java.lang.IllegalStateException: x\nat a.B.c(B.java:1)\n" +
			"Caused by: java.net.ConnectException: refused\nat a.B.error(B.java:2)",
		"out of paper": "hello\nout of paper",
		"":             "",
	} {
		if got := Cause(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
