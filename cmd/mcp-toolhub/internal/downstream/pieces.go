package downstream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/spool"
)

// pieces is a JSON text in parts that are written one after the other, so that a long result is not copied to be put
// into its response. Nobody changes a part.
type pieces struct {
	parts [][]byte
	disk  *spool.Dir  // takes the text if it is large; nil: it stays in memory
	free  func()      // says that the text has left the memory for large messages; nil where it takes none of that
	file  *spool.File // has the text in place of parts; nil for none
}

// toDisk moves a text that takes a part of the memory for large messages to the disk. From there
// its client takes it at its own pace, and holds up nobody. Where the disk does not take it, it
// stays. Its file must be closed once it is written.
func (p pieces) toDisk() pieces {
	if p.disk == nil || p.free == nil || p.size() <= minSpooled {
		return p
	}
	file, err := p.disk.Keep(int64(p.size()), p.writeTo)
	if err != nil {
		return p
	}
	clear(p.parts) // the callers hold the slice, too
	p.free()
	return pieces{file: file}
}

// minSpooled is the size in bytes from which on a text goes to the disk.
const minSpooled = 1 << 20

// whole returns a text in one part.
func whole(text []byte) pieces { return pieces{parts: [][]byte{text}} }

// maxJoined bounds the texts that are put together before they are written: one write costs less than several.
const maxJoined = 64 << 10

func (p pieces) size() int {
	if p.file != nil {
		return int(p.file.Size())
	}
	size := 0
	for _, part := range p.parts {
		size += len(part)
	}
	return size
}

// manyParts is how many parts are written one by one at most.
const manyParts = 8

// writeTo writes the text. Many parts share a buffer, so that each write is worth its while.
func (p pieces) writeTo(w io.Writer) error {
	if p.file != nil {
		_, err := io.CopyBuffer(w, p.file.Reader(), make([]byte, progressBytes))
		return err
	}
	buffer := (*bufio.Writer)(nil)
	if len(p.parts) > manyParts {
		buffer = bufio.NewWriterSize(w, maxJoined)
		w = buffer
	}
	for _, part := range p.parts {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	if buffer != nil {
		return buffer.Flush()
	}
	return nil
}

// framed returns the text between before and after: in one part unless it is large.
func (p pieces) framed(before []byte, after string) pieces {
	if size := p.size() + len(before) + len(after); size <= maxJoined {
		out := append(make([]byte, 0, size), before...)
		for _, part := range p.parts {
			out = append(out, part...)
		}
		return whole(append(out, after...))
	}
	out := make([][]byte, 0, len(p.parts)+2)
	return pieces{parts: append(append(append(out, before), p.parts...), []byte(after)), disk: p.disk, free: p.free}
}

// line returns the text in a form that a line-based wire can carry, as rawjson.Line has it.
func (p pieces) line() (pieces, error) {
	for _, part := range p.parts {
		if bytes.IndexByte(part, '\n') >= 0 || bytes.IndexByte(part, '\r') >= 0 {
			text, err := rawjson.Line(bytes.Join(p.parts, nil))
			return whole(text), err
		}
	}
	return p, nil
}

// answerText returns the response with result to the request with id.
func answerText(id json.RawMessage, result pieces) pieces {
	return result.framed(jsonrpc.ResponseStart(id), "}")
}
