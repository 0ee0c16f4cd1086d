package upstreamtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Fault is a way in which a server over HTTP fails to answer.
type Fault string

const (
	Hangs        Fault = "hangs"         // takes the request and says nothing
	Resets       Fault = "resets"        // breaks the connection
	LimitsRate   Fault = "limits_rate"   // HTTP 429, to be tried again in a second
	Fails        Fault = "fails"         // HTTP 500
	AnswersHTML  Fault = "answers_html"  // HTTP 200 with a page, as proxies and portals do
	WrongVersion Fault = "wrong_version" // answers initialize with a protocol version that there never was
)

// Intercept is for Options.Intercept: requests of these JSON-RPC methods meet with the fault, and without methods all
// requests do. WrongVersion concerns initialize alone.
func (f Fault) Intercept(methods ...string) func(w http.ResponseWriter, r *http.Request, body []byte) bool {
	return func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		m, _ := parse(body)
		if len(methods) > 0 && !slices.Contains(methods, m.Method) {
			return false
		}
		switch f {
		case Hangs:
			<-r.Context().Done()
		case Resets:
			panic(http.ErrAbortHandler)
		case LimitsRate:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests", http.StatusTooManyRequests)
		case Fails:
			http.Error(w, "internal error", http.StatusInternalServerError)
		case AnswersHTML:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprint(w, "<!doctype html><title>Sign in</title><p>Please sign in.</p>")
		case WrongVersion:
			if m.Method != "initialize" {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(response(m.ID, "result",
				[]byte(`{"protocolVersion":"1999-12-31","capabilities":{"tools":{}},`+
					`"serverInfo":{"name":"old","version":"0"}}`)))
		}
		return true
	}
}

// DeepTool is the declaration of a tool whose schema nests so many levels deep.
func DeepTool(name string, levels int) json.RawMessage {
	return fmt.Appendf(nil, `{"name":%q,"inputSchema":{"type":"object","properties":{"a":%s{}%s}}}`, name,
		strings.Repeat(`{"items":`, levels), strings.Repeat(`}`, levels))
}
