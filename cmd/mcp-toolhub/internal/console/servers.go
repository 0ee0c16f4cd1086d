package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Sizes of lists: so many entries are on one page.
const (
	serversPerPage   = 50
	toolsPerPage     = 50
	approvalsPerPage = 25
	callsPerPage     = 50
	rulesPerPage     = 100
	secretsPerPage   = 200
)

const builtin = "builtin" // the transport of the hub's own tools

// serverShown is a server as pages show it.
type serverShown struct {
	tool.ServerStatus
	Steps   []Steering // that can be taken
	Stopped string     // why it is
	SignsIn bool
	Today   ServerToday
}

// serversShown are all servers, those first that need somebody, and the hub's own tools last.
func (v *visit) serversShown(today Today) (list []serverShown) {
	signs := v.Hub.SignsIn()
	for _, st := range v.Hub.Servers() {
		steps, stopped := v.Hub.Steps(st)
		list = append(list, serverShown{st, steps, stopped, slices.Contains(signs, st.Server), today.Servers[st.Server]})
	}
	slices.SortStableFunc(list, func(a, b serverShown) int { return order(a) - order(b) })
	return list
}

// servers shows the state of the servers.
func (v *visit) servers() (*page, error) {
	all := v.serversShown(v.today())
	at, pager := v.part(len(all), serversPerPage)
	return &page{Name: "servers", Title: "Servers", Live: true, Data: map[string]any{
		"List": all[at : at+pager.here], "Pager": pager, "Problems": v.Hub.Problems(),
		"Warnings": v.Hub.Warnings()}}, nil
}

// server shows one server, and the latest lines of the log about it.
func (v *visit) server() (*page, error) {
	id := v.r.PathValue("server")
	for _, s := range v.serversShown(v.today()) {
		if s.Server == id {
			return &page{Name: "server", Title: id, Live: true,
				Data: map[string]any{"Server": s, "Log": strings.Join(v.Hub.Log(id), "\n")}}, nil
		}
	}
	return nil, &fault{http.StatusNotFound, "There is no such server."}
}

// order puts servers first that need somebody.
func order(s serverShown) int {
	urgent := []tool.ServerState{tool.ServerNeedsAuth, tool.ServerNeedsSetup, tool.ServerBackoff, tool.ServerStarting,
		tool.ServerReady, tool.ServerStopped}
	if s.Transport == builtin {
		return len(urgent)
	}
	return slices.Index(urgent, s.State)
}

// steer does what a button of a server says.
func (v *visit) steer() (*page, error) {
	server, back := v.r.PathValue("server"), &page{Redirect: Path + "servers/" + url.PathEscape(v.r.PathValue("server"))}
	switch do := v.r.PathValue("do"); do {
	case string(Start), string(Stop), string(Restart):
		if err := v.Hub.Steer(server, Steering(do)); err != nil {
			return nil, wrong(err)
		}
		v.sessions.say(v.session, map[string]string{"start": "It starts: ",
			"stop":    "It is stopped until it is started here, or the hub is: ",
			"restart": "It is started anew: "}[do]+server)
		return back, nil
	case "signin":
		visit, err := v.Hub.SignIn(v.r.Context(), v.session.id(), server)
		if err != nil {
			return nil, wrong(err)
		}
		here := v.r.Header.Get("Origin") // a form may go there, and nowhere else
		return &page{Name: "visit", Title: "Sign in to " + server, Data: map[string]any{"Visit": visit,
			"Here": here != "" && strings.HasPrefix(visit.Address, here+"/")}}, nil
	case "signout":
		said, err := v.Hub.SignOut(v.r.Context(), server)
		if err != nil {
			return nil, wrong(err)
		}
		v.sessions.say(v.session, server+": "+said)
		return back, nil
	}
	return nil, &fault{http.StatusNotFound, "A server takes start, stop, restart, signin and signout."}
}

// secrets shows what the hub is signed in to, and the names of secrets.
func (v *visit) secrets() (*page, error) {
	names, err := v.Hub.SecretNames()
	if err != nil {
		return nil, err
	}
	signs := v.Hub.SignsIn()
	var list []tool.ServerStatus
	for _, st := range v.Hub.Servers() {
		if st.SignIn != nil || slices.Contains(signs, st.Server) {
			list = append(list, st)
		}
	}
	o, err := v.keys.of("")
	if err != nil {
		return nil, err
	}
	at, pager := v.part(len(names), secretsPerPage)
	return &page{Name: "secrets", Title: "Sign-ins and secrets", Live: true, Data: map[string]any{
		"Servers": list[:min(len(list), serversPerPage)], "MoreServers": max(0, len(list)-serversPerPage),
		"Names": names[at : at+pager.here], "Pager": pager, "Passkeys": o.Keys}}, nil
}
