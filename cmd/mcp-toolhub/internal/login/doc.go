// Package login signs people in to servers while their calls wait, on pages of the hub's own.
//
// A Desk is asked for each call that fails for want of a sign-in. It opens a visit: an address of
// the hub, and a short code that the caller's client alone is shown. A client that takes
// elicitations by URL gets the address so, and its call goes on after the sign-in. For others the
// call fails with both. The page takes the code, binds the visit to the browser that entered it by
// a cookie, and sends that browser to the authorization server. The answer counts only if the same
// browser brings it.
//
// What is asked there, and what becomes of the answer, is left to package signin; who may reach the
// pages over HTTP, to package downstream. Where the hub serves no HTTP, a Desk listens on loopback
// as long as a visit is open; at oauth.redirect only once a browser has entered the code.
package login
