package downstream

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Health is the answer of /health/ready, and what the servers command prints with -o json.
type Health struct {
	Status   string   `json:"status"` // "ready", "degraded" (a server is not ready) or "stopping"
	Problems []string `json:"problems,omitempty"`
	Warnings []string `json:"warnings,omitempty"` // entries of the config that match nothing
	Sessions int      `json:"sessions"`
	Waiting  int      `json:"waiting_calls,omitempty"`  // for the next request of a client of 2026-07-28
	Asking   int      `json:"open_questions,omitempty"` // of servers, to clients with HTTP sessions
	// of clients, to no question that is open for them
	Strays int64 `json:"dropped_responses,omitempty"`
	// of servers, while their calls waited for clients
	Lost    int64               `json:"lost_reports,omitempty"`
	Servers []tool.ServerStatus `json:"servers"`
}

// Health returns the state of the hub and of each upstream server.
func (s *Server) Health() Health {
	h := Health{Status: "ready", Sessions: s.sessions.count(), Servers: s.deps.Status.Servers(),
		Waiting: s.suspensions.table.Len(), Asking: s.sessions.questions(), Strays: s.strays.Load(),
		Lost: s.suspensions.lost.Load(), Problems: s.deps.Status.Problems(), Warnings: s.deps.Status.Warnings()}
	unready := func(st tool.ServerStatus) bool { return st.State != tool.ServerReady && st.State != tool.ServerStopped }
	if len(h.Problems) > 0 || slices.ContainsFunc(h.Servers, unready) {
		h.Status = "degraded"
	}
	if s.stopping.Load() {
		h.Status = "stopping"
	}
	return h
}

// live answers as long as the process can.
func (s *Server) live(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, []byte(`{"status":"live"}`))
}

// ready answers 200 as long as the hub takes calls: a server that is down is no reason to take its
// healthy neighbours out of service. Where the hub has tokens, only their holders see more than the
// status.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	h := s.Health()
	status := http.StatusOK
	if h.Status == "stopping" {
		status = http.StatusServiceUnavailable
	}
	var shown any = map[string]string{"status": h.Status}
	actor, ok := (&guard{server: s}).actorOf(r)
	if ok {
		shown = h
	}
	text, err := json.Marshal(shown)
	if err != nil {
		http.Error(w, "health cannot be written", http.StatusInternalServerError)
		return
	}
	if actor.IsRemote() {
		text = []byte(secret.WithoutPaths(string(text), ""))
	}
	writeJSON(w, status, text)
}
