package signin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// tokenReader is the http.RoundTripper of requests for tokens. It hands the answers of real
// authorization servers on in the form that oauth2 reads: a byte order mark goes, JSON is called so,
// expires_in is a whole number or absent, and a token that stands within an object comes out.
type tokenReader struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper. It fails for a success that holds neither a token nor an error.
func (r tokenReader) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
	if bytes.HasPrefix(body, []byte("{")) {
		resp.Header.Set("Content-Type", "application/json")
		body = plainToken(body)
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode < 300 && !isAnswer(body, media) {
		begins := "it is empty"
		if len(body) > 0 {
			begins = fmt.Sprintf("it begins with %q", shownText(string(body[:min(len(body), 80)])))
		}
		return nil, fmt.Errorf("the answer with HTTP status %d and content type %q holds no token: %s", resp.StatusCode,
			shownText(media), begins)
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, nil
}

// isAnswer reports whether body is what a token endpoint answers: a JSON object or a form.
func isAnswer(body []byte, media string) bool {
	if media != "application/x-www-form-urlencoded" && media != "text/plain" {
		return rawjson.IsObject(body) && json.Valid(body)
	}
	form, err := url.ParseQuery(string(body))
	return err == nil && (form.Has("access_token") || form.Has("error"))
}

// plainToken returns the answer with expires_in as oauth2 reads it. Where it has no token, a token
// of an object in it counts: Slack has that of the person below authed_user.
func plainToken(body []byte) []byte {
	var answer map[string]any
	reader := json.NewDecoder(bytes.NewReader(body))
	reader.UseNumber()
	if reader.Decode(&answer) != nil {
		return body
	}
	if token, _ := answer["access_token"].(string); token == "" {
		for _, member := range answer {
			if inner, ok := member.(map[string]any); ok && inner["access_token"] != nil {
				maps.Copy(answer, inner)
				break
			}
		}
	}
	seconds, err := strconv.ParseFloat(fmt.Sprint(answer["expires_in"]), 64)
	if err != nil || seconds == 0 { // it does not say
		delete(answer, "expires_in")
	} else {
		answer["expires_in"] = int64(min(max(seconds, -1), math.MaxInt32))
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return body
	}
	return text
}

// scopesIn reads the scopes of an answer. They stand between spaces; some servers write commas.
func scopesIn(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
}
