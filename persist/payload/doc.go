// Package payload stores whole results in a directory or a bucket, so that a caller can be given a
// part of a large one and read the rest later.
//
// # Layout
//
// Each stored result has an Entry, a small object of JSON, which says what its bytes are and who
// may read them. The bytes are in an object of their own.
//
//	index/res_06h05ewj….json    an Entry
//	gone/res_06h05ewj….json     the Entry of a result that has expired
//	bytes/res_06h05ewj…-3f9a…   a payload: 5 bytes of header, then zstd, sealed where a key is configured
//	bytes/…-3f9a….txt           what the payload says, for programs of this machine
//
// # Promise
//
// When Put returns nil, bytes and entry are stored for good. What Read hands out has the digest
// that its entry names: bytes that were changed are an error, never a result. In a directory,
// directories have mode 0700, files 0600.
//
// Several hubs may share a directory, and a bucket. A payload without an entry stays for an hour:
// its writer has still to write the entry. Of several hubs that find a result expired one tells: the
// one whose entry in gone/ is written first.
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
