package textfile_test

import (
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	keys := []string{"command", "args", "env", "url", "call", "call_max", "headers"}
	for word, want := range map[string]string{
		"comand": "command", "cmmoand": "command", "Args": "args", "callMax": "call_max", "call-max": "call_max", "header": "headers",
		"ur": "url", "envs": "env", "wholly": "", "": "", strings.Repeat("command", 10): "", "x": "",
	} {
		if got := textfile.Nearest(word, keys); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	t.Parallel()
	if got := textfile.DidYouMean("comand", []string{"command"}, "x"); got != `did you mean "command"?` {
		t.Error(got)
	}
	if got := textfile.DidYouMean("wholly", []string{"command"}, "the keys here are command"); got != "the keys here are command" {
		t.Error(got)
	}
}
