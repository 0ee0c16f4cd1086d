package downstream

import "testing"

// What JSON-RPC lets a server ignore is no reason to refuse a request over HTTP, for which clients
// give up their connection.
func TestUnknownNotificationsAreTaken(t *testing.T) {
	t.Parallel()
	url := serve(t, newServer(t, Config{}, &far{})) + "/mcp"
	for _, version := range []string{"2025-11-25", modernVersion} {
		var in []string
		if version != modernVersion {
			in = append(in, headerSession, open(t, url, version))
		}
		for body, want := range map[string]int{
			`{"jsonrpc":"2.0","method":"notifications/acme","params":{}}`:            202,
			`{"jsonrpc":"2.0","method":"acme/told"}`:                                 202,
			`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"mcp.s.echo"}}`: 400,
		} {
			status, _, got := post(t, url, body, append(in, headerVersion, version, headerMethod,
				"notifications/acme")...)
			if status != want {
				t.Errorf("%s: %s answered with %d %q", version, body, status, got)
			}
			if status, _, got := post(t, url, body, append(in, headerVersion, "2099-01-01")...); status != 400 {
				t.Errorf("a revision that nobody knows: %s answered with %d %q", body, status, got)
			}
		}
	}
}

func TestInitializeTwice(t *testing.T) {
	t.Parallel()
	again := `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	url := serve(t, newServer(t, Config{}, &far{})) + "/mcp"
	id := open(t, url, "2025-11-25")
	status, _, got := post(t, url, again, headerSession, id)
	wantHTTP(t, status, got, 400,
		`{"jsonrpc":"2.0","id":"i","error":{"code":-32600,"message":"invalid request: this session is initialized already: `+
			`go on with it, or initialize without the Mcp-Session-Id header"}}`)
	status, _, got = post(t, url, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, headerSession, id)
	wantHTTP(t, status, got, 200, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	w := dial(t, newServer(t, Config{}, &far{}))
	w.handshake("2025-11-25")
	w.send(again)
	w.want(`{"jsonrpc":"2.0","id":"i","error":{"code":-32600,"message":"invalid request: this connection is initialized already: ` +
		`go on with it, or start the hub anew"}}`)
	w.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	w.want(`{"jsonrpc":"2.0","id":1,"result":{}}`)
}
