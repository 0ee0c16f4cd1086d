package signin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Loopback is a web server at a port of the loopback interface, for browsers of this machine.
type Loopback struct {
	Address string // without a slash at its end
	server  *http.Server
	ended   chan struct{} // closed when server has ended
}

// Port returns the port of an address; 0 where it has none.
func Port(address string) int {
	u, err := url.Parse(address)
	if err != nil {
		return 0
	}
	port, _ := strconv.Atoi(u.Port())
	return port
}

// Serve serves at the first of the ports that is free, 0 for any. A request under another host name than localhost
// gets nothing: such a name may be made to lead here (DNS rebinding).
func Serve(handler http.Handler, logger *slog.Logger, ports ...int) (*Loopback, error) {
	var socket net.Listener
	err := errors.New("no port")
	for i := 0; i < len(ports) && err != nil; i++ {
		socket, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[i])))
	}
	if err != nil && len(ports) == 1 && ports[0] != 0 {
		err = fmt.Errorf("%w: end the other sign-in, or the program, that uses this port, and sign in again; or set "+
			"another oauth.redirect and register that", err)
	}
	if err != nil {
		return nil, err
	}
	l := &Loopback{Address: "http://" + socket.Addr().String(), ended: make(chan struct{})}
	hosts := []string{socket.Addr().String(), fmt.Sprint("localhost:", Port(l.Address))}
	l.server = &http.Server{ReadHeaderTimeout: answerTime, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !slices.Contains(hosts, r.Host) {
				http.Error(w, "this page is not known under that host name", http.StatusForbidden)
				return
			}
			handler.ServeHTTP(w, r)
		})}
	go func() {
		defer close(l.ended)
		_ = l.server.Serve(socket) // ends with Close
	}()
	return l, nil
}

// Close lets the page that was answered last reach the browser, and ends the server.
func (l *Loopback) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = l.server.Shutdown(ctx)
	_ = l.server.Close()
	<-l.ended
}

// CallbackPath is the path of the address at a Loopback that browsers come back to.
const CallbackPath = "/callback"

// listen waits for the one answer that a browser brings: at wanted, the address of the entry, otherwise at the port of
// known, the address that a client was registered for, if it is free, otherwise at any. An answer without the state is
// not taken: every program of this machine can bring one.
func listen(wanted, known, state string, answer chan<- url.Values) (*Loopback, error) {
	path, ports := CallbackPath, []int{Port(known), 0}
	if u, err := url.Parse(wanted); err == nil && wanted != "" {
		path, ports = cmp.Or(u.Path, "/"), []int{Port(wanted)}
	}
	page := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Connection", "close")
		if r.Method != http.MethodGet || r.URL.Path != path {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if r.URL.Query().Get("state") != state {
			http.Error(w,
				"this answer belongs to no sign-in that is under way here: open the address that the terminal shows",
				http.StatusBadRequest)
			return
		}
		select {
		case answer <- r.URL.Query():
			fmt.Fprintln(w, "mcp-toolhub has the answer. You can close this page: the terminal says what came of it.")
		default:
			w.WriteHeader(http.StatusGone)
		}
	}
	return Serve(http.HandlerFunc(page), slog.New(slog.DiscardHandler), ports...)
}
