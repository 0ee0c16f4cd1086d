package console

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// lookEvery is how often a stream looks whether something has changed that nobody tells of.
const lookEvery = time.Second

// live tells a browser when what it shows has changed, as server-sent events: it gets the page
// again then. Each event has the number of calls that wait for a person.
func (v *visit) live() (*page, error) {
	select {
	case v.streams <- struct{}{}:
		defer func() { <-v.streams }()
	default:
		return nil, &fault{http.StatusServiceUnavailable,
			"Too many pages are open: this one shows no changes by itself."}
	}
	v.w.Header().Set("Content-Type", "text/event-stream")
	of := v.r.URL.Query().Get("of")
	changes := v.Hub.Watch(v.r.Context())
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	state, waiting, due := v.stateOf(of), -1, false
	flush := http.NewResponseController(v.w)
	for {
		if now := len(v.Hub.Approvals()); due || now != waiting {
			_ = flush.SetWriteDeadline(time.Now().Add(5 * time.Second))
			kind := "waiting"
			if due {
				kind = "changed"
			}
			_, err := fmt.Fprintf(v.w, "event: %s\ndata: %d\n\n", kind, now)
			if err != nil || flush.Flush() != nil {
				return nil, nil
			}
			waiting, due = now, false
		}
		select {
		case _, open := <-changes:
			if !open {
				return nil, nil
			}
			due = due || of == "approvals" || of == "approval"
			for len(changes) > 0 { // they are told as one
				<-changes
			}
		case <-look.C:
			if time.Now().After(v.session.ends) {
				return nil, nil
			}
			if now := v.stateOf(of); now != state {
				state, due = now, true
			}
		case <-v.session.gone:
			return nil, nil
		case <-v.done:
			return nil, nil
		case <-v.r.Context().Done():
			return nil, nil
		}
	}
}

// stateOf is another text whenever there is something else to see.
func (v *visit) stateOf(of string) string {
	switch of {
	case "servers":
		text, _ := json.Marshal(v.Hub.Servers())
		sum := sha256.Sum256(text)
		return string(sum[:])
	case "calls":
		n, _ := v.Hub.CallsSeen(v.r.Context())
		return fmt.Sprint(n)
	}
	return ""
}
