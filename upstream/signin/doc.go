// Package signin signs the hub in to MCP servers, by OAuth 2.1 as the Model Context Protocol has
// it, and keeps the sign-ins.
//
// Discover finds out where, as of 2026-07-28 and for servers of the older revisions. A Login is one
// sign-in by a person: in a browser, with a code on another device, or with an address that is
// pasted. Where a token stands for the hub, a Source signs in by itself. A Store keeps what comes
// of it in one sealed file, which all hubs of a state directory share. A Source hands out the
// access token of one server, and renews it.
//
// A token goes to the server that it was made for, and to the authorization server that made it.
// Who sends it, and what becomes of a server that nobody is signed in to, is left to package
// upstream.
package signin
