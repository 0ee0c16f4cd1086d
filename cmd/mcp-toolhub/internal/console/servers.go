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
	Entry
	Steps []Steering // that can be taken
	Today ServerToday
}

// serversShown are all servers, those first that need somebody, and the hub's own tools last.
func (v *visit) serversShown(today Today) (list []serverShown) {
	for _, st := range v.Hub.Servers() {
		s := serverShown{st, v.Hub.Entry(st.Server), nil, today.Servers[st.Server]}
		switch {
		case s.Entry.Disabled:
			s.Steps = []Steering{Enable, Remove}
		case st.Transport != builtin:
			s.Steps = []Steering{Restart, Disable, Remove}
		}
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b serverShown) int { return order(a) - order(b) })
	return list
}

// find returns the server that the path of a visit names.
func find(v *visit, today Today) (serverShown, error) {
	all := v.serversShown(today)
	at := slices.IndexFunc(all, func(s serverShown) bool { return s.Server == v.r.PathValue("server") })
	if at < 0 {
		return serverShown{}, &fault{http.StatusNotFound, "There is no such server."}
	}
	return all[at], nil
}

// servers shows the state of the servers.
func (v *visit) servers() (*page, error) {
	all := v.serversShown(v.today())
	at, pager := v.part(len(all), serversPerPage)
	return &page{Name: "servers", Title: "Servers", Live: true, Data: map[string]any{"May": v.mayDecide() == nil,
		"List": all[at : at+pager.here], "Pager": pager, "Problems": v.Hub.Problems(),
		"Warnings": v.Hub.Warnings()}}, nil
}

// server shows one server, and the latest lines of the log about it.
func (v *visit) server() (*page, error) {
	s, err := find(v, v.today())
	if err != nil {
		return nil, err
	}
	p, err := v.person()
	return &page{Name: "server", Title: s.Server, Live: true, Data: struct {
		person
		Log    string
		Server serverShown
	}{p, strings.Join(v.Hub.Log(s.Server), "\n"), s}}, err
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
	s, err := find(v, Today{})
	if err != nil {
		return nil, err
	}
	server, back := s.Server, &page{Redirect: Path + "servers/" + url.PathEscape(s.Server)}
	do := v.r.PathValue("do")
	if slices.Contains(s.Steps, Steering(do)) {
		if do == string(Enable) && s.Program { // which would run
			if err := v.mayDecide(); err != nil {
				return nil, err
			}
		}
		said, err := v.Hub.Steer(v.r.Context(), server, Steering(do))
		if err != nil {
			return nil, wrong(err)
		}
		v.sessions.say(v.session, server+": "+said)
		if do == string(Remove) {
			back.Redirect = Path + "servers"
		}
		return back, nil
	}
	switch do {
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
	return nil, &fault{http.StatusConflict, "The server does not take that now: look at its page."}
}

// secrets shows what the hub is signed in to, and the names of secrets.
func (v *visit) secrets() (*page, error) {
	names, err := v.Hub.SecretNames()
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(v.serversShown(Today{}), func(s serverShown) bool { return s.SignIn == nil && !s.SignsIn })
	o, err := v.keys.of("")
	if err != nil {
		return nil, err
	}
	at, pager := v.part(len(names), secretsPerPage)
	return &page{Name: "secrets", Title: "Sign-ins and secrets", Live: true, Data: map[string]any{
		"Servers": list[:min(len(list), serversPerPage)], "MoreServers": max(0, len(list)-serversPerPage),
		"Names": names[at : at+pager.here], "Pager": pager, "Passkeys": o.Keys}}, nil
}
