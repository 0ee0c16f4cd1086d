package payload

import (
	"cmp"
	"crypto/cipher"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Config says where results are stored and for how long. The zero value of each optional field means its default.
type Config struct {
	Dir      string        // made when the first result is stored
	Key      string        // a secret of at least 16 bytes, from which the key that seals payloads is derived; "": they are not sealed
	MaxAge   time.Duration // a result expires after that; default 30 days
	MaxBytes int64         // that all payloads together take on the disk; default 2 GiB
}

const (
	defaultMaxAge   = 30 * 24 * time.Hour
	defaultMaxBytes = 2 << 30
	maxPayload      = 1 << 30 // of one: no message is larger
)

// Entry is what is known of a stored result.
type Entry struct {
	ID        tool.ResultID `json:"result_id"`
	Digest    string        `json:"sha256"` // of the payload; set by Put
	Size      int64         `json:"size"`   // of the payload, in bytes; set by Put
	Stored    int64         `json:"stored"` // bytes on the disk; set by Put
	MediaType string        `json:"media_type"`
	Tool      tool.Name     `json:"tool_id"`
	Actor     string        `json:"actor_ref"` // who got the result
	Created   time.Time     `json:"created_at"`

	// Expired is when the payload was removed, and Reason why; nil where it is there.
	Expired *time.Time `json:"expired_at,omitempty"`
	Reason  string     `json:"expired_because,omitempty"`
}

// ErrUnknown is returned for an id under which nothing is stored.
var ErrUnknown = errors.New("no result is stored under this id")

// ExpiredError is returned for a result whose payload was removed.
type ExpiredError struct{ Entry Entry }

func (e *ExpiredError) Error() string { return "the stored result is gone: " + e.Entry.Reason }

// CorruptError is returned for a payload that is not what was stored.
type CorruptError struct {
	Path string
	Err  error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("the stored result in %q is not what was stored: %v: check the disk, and the key", e.Path, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// Store is a directory of results. It is safe for concurrent use, also by several processes.
type Store struct {
	cfg      Config
	expired  func(Entry)
	seal     cipher.AEAD // nil: payloads are not sealed
	logger   *slog.Logger
	encoders sync.Pool     // of *zstd.Encoder
	packing  chan struct{} // has room for as many payloads as are written or checked at once: each takes some MB
	reading  chan struct{} // has room for as many large payloads as are held in memory at once

	failure atomic.Pointer[error] // of the last Put; nil where it has stored its result
	written atomic.Int64          // bytes since the last sweep
	sweep   chan struct{}
	stop    chan struct{}
	once    sync.Once
	done    sync.WaitGroup
}

const (
	maxPacking   = 2 // payloads are written or checked at the same time
	maxReading   = 2 // payloads of more than smallPayload bytes are held in memory at the same time
	smallPayload = 1 << 20
)

// Open opens the store, and removes expired results from now on, until Close. expired is called for each one, once its entry says so; nil:
// nobody is told. Of several processes one does so.
func Open(c Config, expired func(Entry), logger *slog.Logger) (*Store, error) {
	c.MaxAge, c.MaxBytes = cmp.Or(c.MaxAge, defaultMaxAge), cmp.Or(c.MaxBytes, defaultMaxBytes)
	seal, err := newSeal(c.Key)
	if err != nil {
		return nil, fmt.Errorf("open the store of results: %w", err)
	}
	s := &Store{cfg: c, expired: expired, seal: seal, logger: logger, reading: make(chan struct{}, maxReading),
		packing: make(chan struct{}, maxPacking), sweep: make(chan struct{}, 1),
		stop: make(chan struct{})}
	s.encoders.New = newEncoder
	s.done.Go(s.retain)
	return s, nil
}

// Close ends what Open has begun. It may be called twice.
func (s *Store) Close() {
	s.once.Do(func() { close(s.stop) })
	s.done.Wait()
}

// Put stores raw under e.ID, and returns e with what Put sets. Both are on the disk when it returns nil.
func (s *Store) Put(e Entry, raw []byte) (Entry, error) {
	file, err := s.indexFile(e.ID)
	if err != nil {
		return e, err
	}
	if len(raw) > maxPayload {
		return e, fmt.Errorf("store a result: %d bytes are more than the %d that are kept", len(raw), maxPayload)
	}
	e.Digest, e.Size, e.Created = tool.Digest(raw), int64(len(raw)), e.Created.UTC()
	if e.Stored, err = s.keep(e, raw, file); err != nil {
		err = fmt.Errorf("store a result: %w: free space on the disk that holds %q, and make it writable", err, s.cfg.Dir)
		s.failure.Store(&err)
		return e, err
	}
	if s.failure.Load() != nil {
		s.failure.Store(nil)
	}
	if s.written.Add(e.Stored) > s.cfg.MaxBytes/8 {
		select {
		case s.sweep <- struct{}{}:
		default: // one is due
		}
	}
	return e, nil
}

// Healthy returns why the last result could not be stored; nil where it was.
func (s *Store) Healthy() error {
	if err := s.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// keep writes the payload and its entry.
func (s *Store) keep(e Entry, raw []byte, file string) (stored int64, err error) {
	path := s.payloadFile(e.Digest)
	if _, err := os.Lstat(path); err == nil && s.sound(e) {
		// Nobody removes the payload between this look and the new entry.
		unlock, err := s.lock()
		if err != nil {
			return 0, err
		}
		defer unlock()
		if info, err := os.Stat(path); err == nil {
			e.Stored = info.Size()
			return e.Stored, s.putEntry(file, e)
		}
	}
	if e.Stored, err = s.write(path, e.Digest, raw); err != nil {
		return 0, err
	}
	return e.Stored, s.putEntry(file, e)
}

func (s *Store) putEntry(file string, e Entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := statefile.Write(file, text); err != nil {
		return err
	}
	return statefile.SyncDir(filepath.Dir(file))
}

// Entry returns what is known of a stored result, also of an expired one, or ErrUnknown.
func (s *Store) Entry(id tool.ResultID) (Entry, error) {
	file, err := s.indexFile(id)
	if err != nil {
		return Entry{}, ErrUnknown
	}
	return readEntry(file)
}

func readEntry(file string) (e Entry, err error) {
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return e, ErrUnknown
	case err != nil:
		return e, fmt.Errorf("read what is known of a stored result: %w", err)
	}
	if err = json.Unmarshal(text, &e); err == nil && (!isHex(e.Digest) || e.Size < 0 || e.Size > maxPayload) {
		err = errors.New("it is no entry")
	}
	if err != nil {
		return Entry{}, &CorruptError{file, err}
	}
	return e, nil
}

// Read calls use with the payload of e, whose memory is use's while it runs. It returns the error of use, an *ExpiredError or a
// *CorruptError.
func (s *Store) Read(e Entry, use func(raw []byte) error) error {
	if e.Expired != nil {
		return &ExpiredError{e}
	}
	if e.Size > smallPayload {
		s.reading <- struct{}{}
		defer func() { <-s.reading }()
	}
	raw, err := s.load(e)
	if err != nil {
		if now, entryErr := s.Entry(e.ID); entryErr == nil && now.Expired != nil {
			return &ExpiredError{now} // a moment ago
		}
		return err
	}
	return use(raw)
}

// indexFile is where the entry of id is. An id cannot lead out of the directory.
func (s *Store) indexFile(id tool.ResultID) (string, error) {
	rest, ok := strings.CutPrefix(string(id), "res_")
	if !ok || rest == "" || len(rest) > 64 || strings.Trim(rest, "0123456789abcdefghijklmnopqrstuvwxyz") != "" {
		return "", fmt.Errorf("%q is no id of a result", id)
	}
	return filepath.Join(s.index(), string(id)+entrySuffix), nil
}

const entrySuffix = ".json"

func (s *Store) index() string { return filepath.Join(s.cfg.Dir, "index") }
func (s *Store) bytes() string { return filepath.Join(s.cfg.Dir, "bytes") }

func (s *Store) payloadFile(digest string) string {
	return filepath.Join(s.bytes(), digest[:2], digest)
}

// lock keeps those out who remove payloads, or who would add an entry for a payload that is there.
func (s *Store) lock() (unlock func(), err error) {
	return statefile.Lock(filepath.Join(s.cfg.Dir, "retention"))
}

func isHex(digest string) bool {
	return len(digest) == 64 && strings.Trim(digest, "0123456789abcdef") == ""
}
