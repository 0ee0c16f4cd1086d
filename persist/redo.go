package persist

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"strings"
)

const (
	redoSuffix = ".redo"

	// redoHalf is the size of one of the two halves of a redo file. While one is being written, the journal itself is
	// synced in the background for what the other one holds.
	redoHalf = 512 << 10

	// redoAfter is how many syncs a journal file has seen before it gets a redo file: short runs need none.
	redoAfter = 8

	// redoSpare is how much space must be free on the disk for it: a hub must not fill up a disk that is nearly full.
	redoSpare = 64 << 20

	redoHeader = 4 + 4 + 8 + 8 // checksum, length of the payload, epoch, offset in the journal
)

// redo makes appended records durable at half the price of syncing the journal itself. A sync of a file that has grown
// makes the file system commit its own journal, too; one of a file whose size and blocks stay as they are writes
// nothing but the data. So the bytes of each commit are also written into a file of fixed size, and that one is synced.
// The journal is synced in the background, before the half of the redo file that holds the same bytes is written anew.
//
// A redo file matters after a loss of power only: whoever takes over the journal file writes into it what the redo file
// holds. Frames carry the epoch of their half, which ends them where older ones follow, and their checksum covers the
// journal's name.
type redo struct {
	file  *os.File
	path  string
	name  string // of the journal file
	epoch uint64
	at    int64 // where the next frame begins
	frame []byte
}

// redoPath is the path of the redo file that belongs to the journal file at path.
func redoPath(path string) string { return strings.TrimSuffix(path, nameSuffix) + redoSuffix }

// newRedo makes the redo file of the journal file at path, with all its blocks.
func newRedo(path, name string) (*redo, error) {
	own := redoPath(path)
	file, err := os.OpenFile(own, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	zeros := make([]byte, 64<<10)
	for at := int64(0); at < 2*redoHalf && err == nil; at += int64(len(zeros)) {
		_, err = file.WriteAt(zeros, at)
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		file.Close() // nothing in it is needed
		os.Remove(own)
		return nil, err
	}
	return &redo{file: file, path: own, name: name, epoch: 1}, nil
}

// half is the number of the half that at lies in.
func (r *redo) half() int64 { return r.at / redoHalf }

// fits reports whether a frame of n bytes fits into the current half.
func (r *redo) fits(n int) bool { return r.at+int64(redoHeader+n) <= (r.half()+1)*redoHalf }

// turn goes on at the beginning of the other half. What that one holds must be durable in the journal by now.
func (r *redo) turn() {
	r.epoch++
	r.at = (1 - r.half()) * redoHalf
}

// put writes bytes, which stand in the journal at offset, and syncs them.
func (r *redo) put(offset int64, bytes []byte) error {
	r.frame = appendFrame(r.frame[:0], r.name, r.epoch, offset, bytes)
	if _, err := r.file.WriteAt(r.frame, r.at); err != nil {
		return err
	}
	r.at += int64(len(r.frame))
	return datasync(r.file)
}

// remove ends the use of the file: all that it holds is durable in the journal.
func (r *redo) remove() {
	r.file.Close() // nothing in it is needed
	os.Remove(r.path)
}

func appendFrame(to []byte, name string, epoch uint64, offset int64, bytes []byte) []byte {
	start := len(to)
	to = append(to, 0, 0, 0, 0)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(bytes)))
	to = binary.LittleEndian.AppendUint64(to, epoch)
	to = binary.LittleEndian.AppendUint64(to, uint64(offset))
	to = append(to, bytes...)
	binary.LittleEndian.PutUint32(to[start:], frameSum(name, to[start+4:]))
	return to
}

func frameSum(name string, rest []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Checksum([]byte(name), table), table, rest)
}

// replay writes into journal, the file called name at path, what its redo file holds, and removes that. It is called by
// the one who holds the journal file. Without a redo file it does nothing.
func replay(journal *os.File, path, name string) (bytes int64, err error) {
	own := redoPath(path)
	text, err := readRedo(own)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read %q: %w", own, err)
	}
	info, err := journal.Stat()
	if err != nil {
		return 0, err
	}
	size := info.Size()
	for start := 0; start < len(text); start += redoHalf {
		err := frames(text[start:min(start+redoHalf, len(text))], name, func(offset int64, payload []byte) error {
			_, err := journal.WriteAt(payload, offset)
			bytes += max(offset+int64(len(payload))-max(size, offset), 0)
			return err
		})
		if err != nil {
			return bytes, err
		}
	}
	if err := journal.Sync(); err != nil {
		return bytes, err
	}
	return bytes, os.Remove(own)
}

// readRedo reads a redo file, which never holds more than its two halves.
func readRedo(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, 2*redoHalf))
}

// frames calls yield for each whole frame of a half, up to the first that is damaged or of another epoch.
func frames(half []byte, name string, yield func(offset int64, payload []byte) error) error {
	epoch := uint64(0)
	for len(half) >= redoHeader {
		size := int64(binary.LittleEndian.Uint32(half[4:]))
		if size > int64(len(half)-redoHeader) {
			return nil
		}
		frame := half[:redoHeader+size]
		own := binary.LittleEndian.Uint64(frame[8:])
		if epoch == 0 {
			epoch = own
		}
		if own != epoch || epoch == 0 || frameSum(name, frame[4:]) != binary.LittleEndian.Uint32(frame) {
			return nil
		}
		offset := int64(binary.LittleEndian.Uint64(frame[16:]))
		if offset < 0 {
			return nil
		}
		if err := yield(offset, frame[redoHeader:]); err != nil {
			return err
		}
		half = half[len(frame):]
	}
	return nil
}
