package hub

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/telemetry"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// observe lets the telemetry know the hub. problems are those of telemetry.New.
func (h *Hub) observe(problems []string) {
	h.telemetry.Tell(h.Logger)
	for _, p := range problems {
		h.Logger.Error("telemetry: " + p)
	}
	h.telemetry.Observe(func() telemetry.State {
		state := telemetry.State{Servers: Model{Hub: h}.Servers(), Approvals: len(h.Permission.approvals.List()),
			JournalBytes: h.journal.Queued(),
			Refused:      h.server.RefusedCallers()}
		if h.records != nil {
			state.StoreLag, state.Surplus = h.records.Lag(), h.records.Surplus()
		}
		return state
	})
}

// serveMetrics serves the metrics at their own address, where the settings name one. end ends that.
func (h *Hub) serveMetrics() (end func(), err error) {
	address := h.Settings().Telemetry.Metrics
	if address == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w: choose another address in hub.metrics.listen", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+downstream.MetricsPath, h.server.OwnHost(address, h.telemetry))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slogError(h.Logger)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(l) // ErrServerClosed: nothing else ends it
	}()
	h.Logger.Info("serving metrics", "url", "http://"+l.Addr().String()+downstream.MetricsPath)
	return func() {
		_ = server.Close()
		<-ended
	}, nil
}

// observedServers lets the telemetry know what is forwarded.
type observedServers struct {
	*upstream.Group
	telemetry *telemetry.Telemetry
}

// Forward implements downstream.Servers.
func (o observedServers) Forward(ctx context.Context, r *tool.Request) (tool.Reply, error) {
	r, end := o.telemetry.Forward(ctx, r)
	reply, err := o.Group.Forward(ctx, r)
	end(reply, err)
	return reply, err
}
