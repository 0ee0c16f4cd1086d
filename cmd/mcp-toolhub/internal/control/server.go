// Package control holds the read model of a running hub, and a local HTTP API for the person at the
// machine: open approvals and remembered answers. Server is the half in the hub, Client the half of
// the command line.
//
// MCP clients use another door: who calls tools does not allow them. The API listens at a socket of
// the state directory, which only the owner can enter. So each side knows that the other one is the
// owner's.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
)

// notice is the content of the file in the state directory by which clients find a running hub. The
// socket is beside it.
type notice struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host,omitempty"` // the machine or container: PID means nothing elsewhere
	Started time.Time `json:"started"`
	Config  string    `json:"config"`
	Version string    `json:"version,omitempty"`
	Shared  bool      `json:"shared,omitempty"`
	// Launched says that start has started the hub: it needs nothing that start cannot give it again.
	Launched bool   `json:"launched,omitempty"`
	Apart    string `json:"apart,omitempty"` // see Hub
}

// runDir returns the directory of the notices.
func runDir(state string) string { return filepath.Join(state, "run") }

// socketOf returns the path of the socket of the hub that has left the notice file.
func socketOf(file string) string { return strings.TrimSuffix(file, ".json") + ".sock" }

// maxSocketPath is the length in bytes of a path at which each system takes a socket.
const maxSocketPath = 100

// atSocket calls use with a path at which the system takes the socket. If its own path is too long,
// its directory has a short name meanwhile.
func atSocket(socket string, use func(path string) error) error {
	if len(socket) <= maxSocketPath {
		return use(socket)
	}
	dir, err := os.MkdirTemp("", "toolhub-") // nobody else can write there
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	short := filepath.Join(dir, "run")
	if err := os.Symlink(filepath.Dir(socket), short); err != nil {
		return err
	}
	return use(filepath.Join(short, filepath.Base(socket)))
}

// Server serves the API of one hub. Close ends it.
type Server struct {
	hub    Hub
	file   string
	url    string // of the page
	http   *http.Server
	serve  sync.WaitGroup
	looked chan struct{} // closed when the notices of dead hubs are removed
}

// Hub holds the parts of a hub that the API reaches.
type Hub struct {
	Model     Model
	Approvals *approval.Approvals // takes answers
	Grants    *policy.Grants      // revokes
	Join      Join

	Restart func(server string) error

	Page   Page          // nil: there is none
	PageAt func() string // the origin of its address, such as "http://127.0.0.1:8808"; not nil where Page is not

	Config   string // absolute path of the config
	Version  string // of the program
	Launched bool   // start has started the hub
	Apart    string // why the hub serves its own client alone, beside another hub of the config; "" where it does not

	Stop func() // lets the hub end that serves no client of its own; nil for another one, which ends with its client
}

// Join takes in a client that another process has on its stdin and stdout. serve lasts until the
// client has gone, the hub ends, or ctx does. note says what that process would do otherwise, in a
// line for a person; "" for nothing. The error says why the client is not taken in.
type Join func(Wish) (serve func(ctx context.Context, in io.Reader, out net.Conn), note string, err error)

// Page is the page for people. It lets browsers in by itself.
type Page interface {
	http.Handler
	// Invite returns the path and query that open the page once.
	Invite() string
	// Code returns a code with which a browser may answer approvals there, by the name of its session.
	Code(session string) (string, error)
}

// Serve opens the API and the page, and writes the notice into the state directory. They last until
// Close, also when ctx ends.
func Serve(ctx context.Context, state string, hub Hub, logger *slog.Logger) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open the API for approvals: %w", err)
	}
	s := &Server{hub: hub, url: "http://" + l.Addr().String(),
		file:   filepath.Join(runDir(state), strconv.Itoa(os.Getpid())+".json"),
		looked: make(chan struct{})}
	listeners := []net.Listener{l}
	if socket, err := s.announce(); err == nil {
		listeners = append(listeners, socket)
	} else { // calls do not need it
		logger.Error("commands, the page and other clients cannot reach this hub", "error", err)
	}
	s.http = &http.Server{Handler: s.handler(l.Addr().String()), ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes: 64 << 10, // browsers have cookies
		ErrorLog:       slog.NewLogLogger(logger.Handler(), slog.LevelDebug)}
	open, end := context.WithCancel(context.WithoutCancel(ctx))
	s.http.BaseContext = func(net.Listener) context.Context { return open }
	s.http.RegisterOnShutdown(end)
	for _, l := range listeners {
		s.serve.Go(func() { _ = s.http.Serve(l) }) // ErrServerClosed: nothing else ends it
	}
	go func() {
		defer close(s.looked)
		_, _ = Find(open, state) // which removes the notices of hubs that have died
	}()
	return s, nil
}

// announce opens the socket and writes the notice.
func (s *Server) announce() (l net.Listener, err error) {
	if err := os.MkdirAll(filepath.Dir(s.file), 0o700); err != nil {
		return nil, err
	}
	socket := socketOf(s.file)
	_, _ = os.Remove(s.file), os.Remove(socket) // of an earlier process of this number, perhaps with other rights
	err = atSocket(socket, func(path string) (err error) {
		l, err = net.Listen("unix", path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: there is no socket at %q: "+
			"name with --state-dir a directory on a file system that has sockets", err, socket)
	}
	text, err := json.Marshal(notice{PID: os.Getpid(), Host: hostname(), Started: time.Now().UTC(),
		Config: s.hub.Config, Version: s.hub.Version, Shared: s.hub.Stop != nil, Launched: s.hub.Launched,
		Apart: s.hub.Apart})
	if err == nil {
		err = os.WriteFile(s.file, text, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// URL is the page's address.
func (s *Server) URL() string { return s.url }

// closeWithin bounds the time that open requests have at the end.
const closeWithin = time.Second

// Close ends the API and removes its notice. Streams end at once. Other open requests, such as the
// last answer, have until ctx ends, and at most closeWithin.
func (s *Server) Close(ctx context.Context) error {
	_, _ = os.Remove(s.file), os.Remove(socketOf(s.file))
	ctx, cancel := context.WithTimeout(ctx, closeWithin)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	s.serve.Wait()
	<-s.looked
	return err
}

// handler serves the API at the socket, and the page at address. A page in a browser can be made to
// send requests there under another name; it gets nothing.
func (s *Server) handler(address string) http.Handler {
	_, port, _ := net.SplitHostPort(address)
	named := net.JoinHostPort("localhost", port) // as passkeys want it
	mux := http.NewServeMux()
	model := s.hub.Model
	for pattern, get := range map[string]func(*http.Request) (any, error){
		"GET /approvals": func(*http.Request) (any, error) { return model.Approvals(), nil },
		"GET /approvals/{id}": func(r *http.Request) (any, error) {
			return model.Approval(approval.ID(r.PathValue("id")))
		},
		"POST /approvals/{id}": s.answer,
		"GET /calls/{id}/spans": func(r *http.Request) (any, error) {
			if spans := model.Spans(tool.InvocationID(r.PathValue("id"))); spans != nil {
				return spans, nil
			}
			return nil, errNoSpans
		},
		"GET /report": func(*http.Request) (any, error) { return model.Report(), nil },
		"GET /surface": func(r *http.Request) (any, error) {
			return model.Surface(r.FormValue("profile"), tool.Actor{Name: tool.Local, Door: "stdio"})
		},
		"GET /tool": func(r *http.Request) (any, error) {
			text, err := model.Show(r.FormValue("profile"), r.FormValue("name"), r.FormValue("json") != "")
			return string(text), err
		},
		"POST /explain": func(r *http.Request) (any, error) {
			var call Call
			if err := json.NewDecoder(io.LimitReader(r.Body, maxReply)).Decode(&call); err != nil {
				return nil, errors.New("this is no JSON object of tool, profile, actor and input")
			}
			return model.Decision(r.Context(), call)
		},
		"POST /servers/{id}/restart": func(r *http.Request) (any, error) {
			return map[string]bool{"restarted": true}, s.hub.Restart(r.PathValue("id"))
		},
		"POST /page/invite": s.invite,
		"POST /page/code":   s.code,
		"GET /grants":       func(*http.Request) (any, error) { return model.Grants(), nil },
		"DELETE /grants/{id}": func(r *http.Request) (any, error) {
			return map[string]bool{"revoked": true}, s.hub.Grants.Revoke(r.PathValue("id"))
		},
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			v, err := get(r)
			reply(w, v, err)
		})
	}
	mux.HandleFunc("GET /approvals/watch", s.watch)
	mux.HandleFunc("GET /events", model.Events)
	mux.HandleFunc("POST "+joinPath, s.takeIn)
	mux.HandleFunc("POST /stop", s.stop)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		say(w, http.StatusNotFound, "there is nothing here: see docs/permission.md")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr); ok && at != nil {
			mux.ServeHTTP(w, r)
			return
		}
		if s.hub.Page != nil && (r.Host == address || r.Host == named) && strings.HasPrefix(r.URL.Path, pagePath) {
			s.hub.Page.ServeHTTP(w, r)
			return
		}
		say(w, http.StatusUnauthorized, "not for you: only the page is here")
	})
}

// pagePath is where the page begins. It lets browsers in by itself.
const pagePath = "/ui/"

var (
	errNoPage  = errors.New("this hub has no page: it runs one command alone")
	errNoSpans = errors.New("it is none of the latest calls of this hub")
)

// invite answers with an address that opens the page once.
func (s *Server) invite(*http.Request) (any, error) {
	if s.hub.Page == nil {
		return nil, errNoPage
	}
	return map[string]string{"url": s.hub.PageAt() + s.hub.Page.Invite()}, nil
}

// code answers with a code for a session of the page.
func (s *Server) code(r *http.Request) (any, error) {
	var given struct {
		Session string `json:"session"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, maxReply)).Decode(&given); err != nil {
		return nil, errors.New("this is no JSON object of session")
	}
	if s.hub.Page == nil {
		return nil, errNoPage
	}
	code, err := s.hub.Page.Code(given.Session)
	return map[string]string{"code": code}, err
}

// Reply is a person's answer to an approval: a choice, or an outcome.
type Reply struct {
	Choice    policy.Choice   `json:"choice,omitempty"`
	Sentence  string          `json:"sentence,omitempty"`
	By        string          `json:"by,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // in the place of the call's

	// Outcome is that of a client of the Agent Client Protocol, as it answers session/request_permission.
	Outcome *Outcome `json:"outcome,omitempty"`
}

// Outcome is the RequestPermissionOutcome of the Agent Client Protocol.
type Outcome struct {
	Outcome string        `json:"outcome"`            // selected or cancelled
	Option  policy.Choice `json:"optionId,omitempty"` // the one selected: the options of a request are choices
}

// answer is the reply as it settles the approval. A request that was cancelled is a question that
// nobody has answered, which denies once.
func (r *Reply) answer() (approval.Answer, error) {
	a := approval.Answer{Choice: r.Choice, Sentence: r.Sentence, By: "queue/" + r.By, Arguments: r.Arguments}
	if string(r.Arguments) == "null" {
		a.Arguments = nil
	}
	switch o := r.Outcome; {
	case o == nil:
		return a, nil
	case r.Choice != "":
		return a, errors.New("the answer has a choice and an outcome: send one of them")
	case o.Outcome == "selected":
		a.Choice = o.Option
	case o.Outcome == "cancelled":
		a.Choice, a.Dismissed = policy.DenyOnce, true
	default:
		return a, errors.New("the outcome is neither selected nor cancelled")
	}
	if r.By == "" {
		a.By += "acp"
	}
	return a, nil
}

// maxReply bounds an answer, whose arguments may be as large as a call's.
const maxReply = 2 << 20

func (s *Server) answer(r *http.Request) (any, error) {
	var given Reply
	dec := json.NewDecoder(io.LimitReader(r.Body, maxReply))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&given); err != nil || dec.More() {
		return nil, errors.New("the answer is no JSON object of choice or outcome, sentence, by and arguments")
	}
	id := approval.ID(r.PathValue("id"))
	a, err := given.answer()
	if err == nil {
		err = s.hub.Approvals.Answer(id, a)
	}
	if err != nil {
		return nil, err
	}
	return s.hub.Model.Approval(id)
}

// joinPath is where a client joins the hub. After the answer 101 the connection carries what stdin and stdout would.
const joinPath = "/join"

// noteHeader carries the note of Join.
const noteHeader = "Toolhub-Note"

// Wish says what a client that joins wants, and what the hub of its own process would be.
type Wish struct {
	Config    string            `json:"config"`          // absolute path
	Rules     string            `json:"rules,omitempty"` // absolute path of --rules
	Style     string            `json:"style,omitempty"` // of --names
	Profile   string            `json:"profile"`
	Command   bool              `json:"command,omitempty"` // a command asks for the person at its terminal
	Version   string            `json:"version"`
	Dir       string            `json:"dir"`                 // where servers without cwd would run
	Variables map[string]string `json:"variables,omitempty"` // digests of the values that the config refers to
}

func (s *Server) takeIn(w http.ResponseWriter, r *http.Request) {
	var given Wish
	if err := json.NewDecoder(io.LimitReader(r.Body, maxReply)).Decode(&given); err != nil {
		reply(w, nil, errors.New("this is no JSON object of config and profile"))
		return
	}
	serve, note, err := s.hub.Join(given)
	if err != nil {
		reply(w, nil, err)
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		reply(w, nil, err)
		return
	}
	defer conn.Close()
	if _, err := io.WriteString(conn,
		"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: mcp\r\n"+noteHeader+": "+
			url.QueryEscape(note)+"\r\n\r\n"); err == nil {
		serve(s.http.BaseContext(nil), buffered, conn) // that of r ends with the input
	}
}

func (s *Server) stop(w http.ResponseWriter, _ *http.Request) {
	if s.hub.Stop == nil {
		reply(w, nil, errors.New("this hub ends with its client, or by a signal"))
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		reply(w, nil, err)
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
	s.hub.Stop()
	_, _ = io.Copy(io.Discard, conn) // the connection lasts as long as the process, which Client.Stop waits for
}

// watch streams the changes of approvals, a JSON object a line.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	enc, flush := json.NewEncoder(w), http.NewResponseController(w)
	_ = flush.Flush() // tells the client that the stream is open
	for e := range s.hub.Model.Watch(r.Context()) {
		if enc.Encode(e) != nil || flush.Flush() != nil {
			return
		}
	}
}

// reply sends v, or err where there is one.
func reply(w http.ResponseWriter, v any, err error) {
	switch {
	case err == nil:
		send(w, http.StatusOK, v)
	case errors.Is(err, approval.ErrUnknown), errors.Is(err, policy.ErrNoGrant), errors.Is(err, errNoSpans):
		say(w, http.StatusNotFound, err.Error())
	default:
		say(w, http.StatusConflict, err.Error())
	}
}

// say sends an error.
func say(w http.ResponseWriter, status int, message string) {
	send(w, status, map[string]string{"error": message})
}

func send(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // fails where the client is gone
}
