package cli

import (
	"net/http"
)

// standing is the stream of a session that no request has opened.
func (w *wire) standing() <-chan string {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	w.setHeaders(req)
	return w.listen(req)
}
