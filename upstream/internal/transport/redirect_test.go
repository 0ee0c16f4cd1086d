package transport

import (
	"errors"
	"net/http"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

// TestRedirectAwayFromTLS: no message recommends http in the place of https.
func TestRedirectAwayFromTLS(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{"https://a.example/mcp": "https://a.example/mcp/", "http://a.example/mcp": "http://a.example/mcp/"} {
		s, err := NewHTTP(settings.Server{URL: url}, nil)
		if err != nil {
			t.Fatal(err)
		}
		to, _ := http.NewRequest(http.MethodGet, "http://a.example/mcp/", nil)
		var answer *fault.AnswerError
		if err := s.checkRedirect(to, []*http.Request{{Method: http.MethodPost}}); !errors.As(err, &answer) || answer.What != "redirects to "+want {
			t.Errorf("%s: %v", url, err)
		}
	}
}
