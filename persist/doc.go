// Package persist keeps what the hub has to remember: here the journal, to which the record of every invocation goes as
// one line of JSON.
//
// # Promise
//
// When Journal.Commit returns nil, its records are written, and so is everything that was queued before them and not
// reported lost. A hub that is killed leaves a journal that Read can read to that point. So does a machine that loses
// power where SyncWithin is 0; otherwise what was committed within that time before may be missing. Nothing of the
// configuration, so no credential of it, is ever written: the journal holds records only, and what a record may hold
// is for the package that makes it to decide.
//
// # Group commit
//
// Callers encode their records themselves, in parallel, and add the bytes to the batch that is
// being collected. One of them takes the batch, writes it with a single write, syncs once if
// anybody waits for it, and tells all of them. What arrives meanwhile is the next batch, and one of
// those who wait for that writes it. So a lone caller waits for one sync and nothing else, not even
// for another goroutine, and sixty-four callers share one.
//
// # Call records
//
// A call leaves one line before it runs and one at its end, a Call each. One that waits, runs hooks
// or reports progress leaves more between them. Read derives the standard's objects from the lines.
// docs/records.md specifies the lines.
//
// # Files
//
// The directory holds files named journal-<UTC time>-<number>.jsonl, whose names sort in the order of their creation.
// Several hubs may share the directory (each client of one person starts its own stdio hub), so each keeps a file for
// itself for as long as it lives: under flock where there is one, opened so that nobody else can open it for writing
// on Windows. The system ends both when the process ends, however it ends. A file that nobody holds is closed.
//
//   - A hub that starts goes on with the newest closed file that has room, having cut off a line that a crash left
//     unfinished, and otherwise begins a new one. So a hundred short runs share a file rather than leave a hundred.
//   - After a full file a new one is begun. The files of one process are in the order of their
//     names. The hub holds its full files, too, until it ends: calls in them may be open.
//   - A hub removes its own full files and closed ones: those beyond MaxFiles, oldest first, and
//     those last written before MaxAge. A file in which a call is open stays: EndKilled needs it if
//     the hub is killed. Files that other living hubs hold are neither counted nor removed.
//   - EndKilled ends the calls that are open in closed files: nobody else will. settled.json says
//     what it need not read again.
//   - Where the file system knows no locks, every file looks as if somebody held it: none is continued or removed, and
//     the log says so.
package persist
