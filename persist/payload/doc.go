// Package payload stores whole results in a directory or a bucket, so that a caller can be given a
// part of a large one and read the rest later.
//
// # Layout
//
// Bytes are content-addressed: the object of a payload is named by the SHA-256 of what it holds,
// and is written once. Each stored result has an Entry beside that: a small object of JSON under
// the result's id, which says what the bytes are and who may read them. Two results of the same
// bytes share them.
//
//	index/res_06h05ewj….json    an Entry
//	gone/res_06h05ewj….json     the Entry of a result that has expired
//	bytes/3f/3f9a…              a payload: 5 bytes of header, then zstd, sealed where a key is configured
//
// In a bucket payloads have the hour of their results in their keys, bytes/2026-11-23T14/3f9a…, and
// are shared within the hour.
//
// # Promise
//
// When Put returns nil, bytes and entry are stored for good. What Read hands out has the digest
// that its entry names: bytes that were changed are an error, never a result. In a directory,
// directories have mode 0700, files 0600.
//
// Several hubs may share a directory, and a bucket. A bucket cannot be locked. In its place, an
// object that nobody names stays for two hours: a writer that finds a payload of this hour can rely
// on it. Of several hubs that find a result expired one tells: the one whose entry in gone/ is
// written first.
//
// # Retention
//
// A result expires when it is too old, or when all together take too much space: then the oldest
// result of the caller that has most goes first. Expiry removes the bytes. The entry stays for a
// year and says why.
//
// # Why not gocloud.dev for directories
//
// Its fileblob syncs nothing to the disk, so it cannot keep the promise. And gocloud.dev/blob
// brings gRPC, protobuf and the OpenTelemetry SDK to every build; docs/architecture.md has the
// figures. So it is behind the build tag clouds, with the drivers.
package payload
