package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// SignIn is the tool.SignInAsker of the desk. A client that takes elicitations by URL gets the
// address so, and SignIn returns at the end of the visit. For others it returns the failure with
// the address.
func (d *Desk) SignIn(ctx context.Context, n *tool.SignInNeed) error {
	server, ok := d.opts.Server(n.Server, n.Session)
	elicits := takesURLs(n)
	if !ok || !server.SignsIn() || server.OAuth.Machine || n.Hidden && !elicits {
		return n.Why
	}
	v, err := d.visitOf(ctx, server, n.Session, fmt.Sprintf("%.100s", n.Actor.Client.Name))
	if err != nil {
		d.opts.Logger.Debug("no page for a sign-in", "server", n.Server, "error", err)
		return n.Why
	}
	if !elicits {
		return v.failure(n)
	}
	n.Aside(ctx, func() { err = d.wait(ctx, v, n) })
	if err == nil {
		ready, cancel := context.WithTimeout(ctx, readyWithin)
		defer cancel()
		d.opts.Ready(ready)
	}
	return err
}

// readyWithin bounds the wait of a call for a server that somebody has just signed in to.
const readyWithin = 30 * time.Second

// takesURLs reports whether the client behind a call can be sent to an address by an elicitation.
func takesURLs(n *tool.SignInNeed) bool {
	elicitation := rawjson.GetObject(n.Hop.ClientCapabilities, "elicitation")
	mode, ok := rawjson.Get(elicitation, "url")
	return n.Ask != nil && ok && rawjson.IsObject(mode)
}

// failure tells the caller where to sign in. Records do not hold it: whoever reads them could do so
// in the caller's place.
func (v *visit) failure(n *tool.SignInNeed) *tool.Failure {
	where := ""
	if !isPublic(v.base) {
		where = " on the machine of the hub"
	}
	f := *n.Why
	f.Private = fmt.Sprintf("; or open %s in a browser%s and enter the code %s there within %d minutes, then call "+
		"again. The code is for the person at this client alone", v.page(), where, v.shownCode(),
		int(time.Until(v.expires).Round(time.Minute).Minutes()))
	return &f
}

// otherAsks bounds the wait of a call for another one whose client is asked the same: that client may never come back.
const otherAsks = 15 * time.Second

// wait asks the person at the client, unless a call of the same caller does or has, and returns at
// the end of the visit.
func (d *Desk) wait(ctx context.Context, v *visit, n *tool.SignInNeed) error {
	timer := time.NewTimer(otherAsks)
	defer timer.Stop()
	select {
	case v.asks <- struct{}{}:
		defer func() { <-v.asks }()
	case <-timer.C:
	case <-v.done:
	case <-ctx.Done():
	}
	d.mu.Lock()
	known := v.accepted || v.over
	d.mu.Unlock()
	if known || ctx.Err() != nil {
		return d.await(ctx, v, n)
	}
	return d.elicit(ctx, v, n)
}

// elicit sends the person at the client to the page, and returns at the end of the visit.
func (d *Desk) elicit(ctx context.Context, v *visit, n *tool.SignInNeed) error {
	d.mu.Lock()
	v.elicited = true
	d.mu.Unlock()
	message := fmt.Sprintf("The server %q wants you to sign in. Open this page of mcp-toolhub and enter the "+
		"code %s there.",
		n.Server, v.shownCode())
	legacy := n.Hop.Revision < modern
	params := map[string]any{"mode": "url", "url": v.page(), "message": message}
	if legacy {
		params["elicitationId"] = v.id
	}
	text, _ := json.Marshal(params) // texts alone
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() { // who has signed in elsewhere need not answer any more
		select {
		case <-v.done:
			cancel()
		case <-stop:
		}
	}()
	question := tool.Question{Key: "sign_in", Method: tool.MethodElicit, Params: text, Server: tool.HubItself,
		Own: true}
	answers, err := n.Ask(asking, []tool.Question{question})
	var said struct{ Action string }
	switch {
	case ctx.Err() != nil:
		return canceled(ctx)
	case asking.Err() != nil: // the visit is over
		return d.await(ctx, v, n)
	case err != nil || len(answers) != 1:
		return v.failure(n)
	case answers[0].Err != nil && legacy && !n.Hidden:
		return required(text, message)
	case answers[0].Err != nil:
		return v.failure(n)
	case json.Unmarshal(answers[0].Result, &said) == nil && said.Action == "accept":
		d.mu.Lock()
		v.accepted = true
		d.mu.Unlock()
		return d.await(ctx, v, n)
	}
	d.finish(v, errDeclined)
	return d.await(ctx, v, n)
}

// modern is the first revision on which nobody is told of the end of an elicitation.
const modern = "2026-07-28"

// required is the error of 2025-11-25 that sends a client to the page which cannot be asked on a
// stream: it calls again afterwards.
func required(elicitation []byte, message string) error {
	data := append(append([]byte(`{"elicitations":[`), elicitation...), `]}`...)
	const shown = "somebody has to sign in first"
	return &tool.RPCError{Code: tool.CodeURLElicitationRequired, Message: message, Shown: shown, Data: data, Own: true,
		ShownRaw: fmt.Appendf(nil, `{"code":%d,"message":%q}`, tool.CodeURLElicitationRequired, shown)}
}

// reportEvery is the time between two reports of a call that waits. Clients wait longer without progress.
const reportEvery = 5 * time.Second

// await returns at the end of the visit, or of the call.
func (d *Desk) await(ctx context.Context, v *visit, n *tool.SignInNeed) error {
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	for i := 1; ; i++ {
		select {
		case <-v.done:
			if v.err == nil {
				return nil
			}
			f := *n.Why
			f.Message = fmt.Sprintf("nobody has signed in to %q: %v; call again to begin anew", n.Server, v.err)
			return &f
		case <-ctx.Done():
			return canceled(ctx)
		case <-ticker.C:
		}
		if n.Progress != nil {
			n.Progress(tool.Progress{Params: fmt.Appendf(nil, `{"progress":%.4f,"message":%s}`, float64(i)/10000,
				rawjson.Quote(fmt.Sprintf("waiting until somebody has signed in to %q", n.Server)))})
		}
	}
}

// canceled is the end of a call that waits for a sign-in no more.
func canceled(ctx context.Context) *tool.Failure {
	f := &tool.Failure{Class: tool.ClassCanceled, Cause: context.Cause(ctx),
		Message: "the call was canceled before anybody signed in"}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		f.Class, f.Message = tool.ClassTimeout, "the call's time was over before anybody signed in"
	}
	return f
}

// Begun is the first line of Begin's answer: the person opens Address and enters Code there before Expires.
type Begun struct {
	Address string    `json:"address"`
	Code    string    `json:"code"`
	Expires time.Time `json:"expires"`
}

// Ended is the last line of Begin's answer. Problem says why nobody has signed in.
type Ended struct {
	SignedIn bool   `json:"signed_in"`
	Problem  string `json:"problem,omitempty"`
}

var errNoServer = errors.New("there is no server of that name that somebody signs in to")

// begin begins a visit that a person has asked for, by that client.
func (d *Desk) begin(ctx context.Context, id string, caller tool.Session, client string) (*visit, error) {
	server, ok := d.opts.Server(id, caller)
	if !ok || !server.SignsIn() || server.OAuth.Machine {
		return nil, errNoServer
	}
	return d.visitOf(ctx, server, caller, client)
}

func (v *visit) begun() Begun { return Begun{v.page(), v.shownCode(), v.expires} }

// Visit begins a visit that a person has asked for, by a client that shows where it goes on.
func (d *Desk) Visit(ctx context.Context, id string, caller tool.Session, client string) (Begun, error) {
	v, err := d.begin(ctx, id, caller, client)
	if err != nil {
		return Begun{}, err
	}
	return v.begun(), nil
}

// Begin begins a visit of a caller that has come over HTTP, and answers with two lines of JSON:
// Begun, and Ended at the end of the visit.
func (d *Desk) Begin(w http.ResponseWriter, r *http.Request, id string, caller tool.Actor) {
	session := tool.Session{Key: "sign-in/" + caller.Ref(), Name: caller.Name, Person: caller.Name}
	v, err := d.begin(r.Context(), id, session, "mcp-toolhub login")
	switch {
	case errors.Is(err, errNoServer):
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	lines := json.NewEncoder(w)
	if lines.Encode(v.begun()) != nil || http.NewResponseController(w).Flush() != nil {
		return
	}
	select {
	case <-v.done:
		end := Ended{SignedIn: v.err == nil}
		if v.err != nil {
			end.Problem = v.err.Error()
		}
		_ = lines.Encode(end) // fails where the caller has gone
	case <-r.Context().Done():
	}
}
