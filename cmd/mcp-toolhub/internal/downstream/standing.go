package downstream

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// standing serves GET: the stream on which a session is told what belongs to none of its requests. A newer stream of the
// session takes the place of an older one, whose client may be long gone.
func (d *httpDoor) standing(w http.ResponseWriter, r *http.Request, s *session) {
	if !accepts(r, "text/event-stream") {
		http.Error(w, "Accept must contain text/event-stream", http.StatusNotAcceptable)
		return
	}
	if v := r.Header.Get(headerVersion); v != "" && !supported(v) {
		http.Error(w, fmt.Sprintf("unsupported protocol version (supported versions: %s)",
			strings.Join(mcp.SupportedProtocolVersions(), ", ")), http.StatusBadRequest)
		return
	}
	mine := s.takeStream()
	stream := newHTTPReply(w, r, nil, false)
	defer stream.close()
	stream.begin()
	stream.keepAlive()
	out := s.caller.out
	out.signal() // what has waited for a stream
	for {
		select {
		case <-mine:
			out.signal()
			return
		case <-s.ended:
			return
		case <-r.Context().Done():
			return
		case <-out.wake:
			out.drain(stream.notify, mine)
		}
	}
}

// takeStream makes the session's stream the caller's. The channel is closed when another one takes it.
func (s *session) takeStream() <-chan struct{} {
	s.streaming.Lock()
	defer s.streaming.Unlock()
	if s.stream != nil {
		close(s.stream)
	}
	s.stream = make(chan struct{})
	return s.stream
}
