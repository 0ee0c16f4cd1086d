package rawjson

import fast "github.com/segmentio/encoding/json"

// Valid reports whether text is one JSON value with nothing but white space around it, nested at most MaxDepth deep. It
// accepts what encoding/json accepts, to that depth: like there, strings may hold bytes that are no UTF-8.
//
// Every message passes through it, also those of many megabytes: encoding/json takes several times as long.
func Valid(text []byte) bool { return Depth(text) <= MaxDepth && fast.Valid(text) }
