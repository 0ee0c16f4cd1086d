package payload

import (
	"cmp"
	"context"
	"crypto/cipher"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Config says where results are stored and for how long. The zero value of each optional field means its default.
type Config struct {
	Dir string // made when the first result is stored
	URL string // of a bucket, in place of Dir; CheckURL says which are taken
	// a secret of at least 16 bytes, from which the key that seals payloads is derived; "": they
	// are not sealed
	Key      string
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

	Name    string `json:"name,omitempty"`    // of an artifact; "" of a result
	Version int    `json:"version,omitempty"` // of what the tool has given the caller under that name; set by Put

	// Text is the payload as plain text. Put writes it to File, for other programs of this machine, and the file goes
	// with the payload. File is "" where payloads are sealed or elsewhere.
	Text []byte `json:"-"`
	File string `json:"-"`

	// Expired is when the payload was removed, and Reason why; nil where it is there.
	Expired *time.Time `json:"expired_at,omitempty"`
	Reason  string     `json:"expired_because,omitempty"`
}

// Ref is what records say of the entry.
func (e Entry) Ref() *tool.PersistedRef {
	r := &tool.PersistedRef{URI: tool.ResultURI(e.ID), SHA256: e.Digest, Size: e.Size, MediaType: e.MediaType,
		Name: e.Name, Version: e.Version}
	if e.Name != "" {
		r.ArtifactID = e.ID
	}
	return r
}

// ErrUnknown is returned for an id under which nothing is stored.
var ErrUnknown = errors.New("no result is stored under this id")

// ExpiredError is returned for a result whose payload was removed.
type ExpiredError struct{ Entry Entry }

func (e *ExpiredError) Error() string { return "the stored result is gone: " + e.Entry.Reason }

// CorruptError is returned for a payload that is not what was stored.
type CorruptError struct {
	Path string // where it is
	Err  error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("the stored result in %q is not what was stored: %v: check the disk or bucket, and the key",
		e.Path, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// Store keeps results in one place. It is safe for concurrent use, also by several processes.
type Store struct {
	cfg      Config
	place    place
	far      bool // it is a bucket
	outage   outage
	expired  func(Entry)
	seal     cipher.AEAD // nil: payloads are not sealed
	logger   *slog.Logger
	encoders sync.Pool     // of *zstd.Encoder
	packing  chan struct{} // has room for as many payloads as are written at once: each takes some MB
	reading  chan struct{} // has room for as many large payloads as are held in memory at once

	// within returns the context of what is done for a payload of that size.
	within func(size int64) (context.Context, context.CancelFunc)

	unstored atomic.Pointer[error] // of the last Put; nil where it has stored its result
	unread   atomic.Pointer[error] // of the last Read; nil where that could
	written  atomic.Int64          // bytes since the last sweep
	sweep    chan struct{}

	storing  sync.Mutex // see lock
	sweeping sync.Mutex
	seen     map[string]seen // of a bucket: the entries of the last sweep, by key; guarded by sweeping
	stop     context.CancelFunc
	done     sync.WaitGroup
	closed   sync.Once
}

const (
	maxPacking   = 2 // payloads are written at the same time
	maxReading   = 2 // payloads of more than smallPayload bytes are held in memory at the same time
	smallPayload = 1 << 20
)

// Open opens the store, and removes expired results from now on, until Close. expired is called for
// each one, once its entry says so; nil: nobody is told. Of several processes one does so. ctx ends
// what is done for results.
func Open(ctx context.Context, c Config, expired func(Entry), logger *slog.Logger) (*Store, error) {
	s, err := openStore(ctx, c, expired, logger)
	if err != nil {
		return nil, err
	}
	sweeping, stop := context.WithCancel(ctx)
	s.stop = stop
	s.done.Go(func() { s.retain(sweeping) })
	return s, nil
}

func openStore(ctx context.Context, c Config, expired func(Entry), logger *slog.Logger) (*Store, error) {
	c.MaxAge, c.MaxBytes = cmp.Or(c.MaxAge, defaultMaxAge), cmp.Or(c.MaxBytes, defaultMaxBytes)
	seal, err := newSeal(c.Key)
	if err != nil {
		return nil, fmt.Errorf("open the store of results: %w", err)
	}
	if c.URL == "" {
		return newStore(ctx, c, directory(filepath.Clean(c.Dir)), seal, expired, logger), nil
	}
	b, err := openBucket(ctx, c.URL)
	if err != nil {
		return nil, fmt.Errorf("open the store of results: %w", err)
	}
	return newStore(ctx, c, b, seal, expired, logger), nil
}

func newStore(ctx context.Context, c Config, at place, seal cipher.AEAD, expired func(Entry),
	logger *slog.Logger) *Store {
	s := &Store{cfg: c, place: at, far: c.URL != "", expired: expired, seal: seal, logger: logger,
		reading: make(chan struct{}, maxReading), packing: make(chan struct{}, maxPacking),
		sweep: make(chan struct{}, 1)}
	s.encoders.New = newEncoder
	s.within = func(int64) (context.Context, context.CancelFunc) { return ctx, func() {} }
	if s.far {
		s.seen = make(map[string]seen)
		s.within = func(size int64) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx,
				allowed(size))
		}
	}
	s.stop = func() {}
	return s
}

// Close ends what Open has begun. It may be called twice.
func (s *Store) Close() {
	s.stop()
	s.done.Wait()
	s.closed.Do(func() {
		if err := s.place.close(); err != nil {
			s.logger.Warn("the store of results does not close", "error", err)
		}
	})
}

// Put stores raw under e.ID, and returns e with what Put sets. Both are durable when it returns nil.
func (s *Store) Put(e Entry, raw []byte) (_ Entry, err error) {
	if !isID(e.ID) {
		return e, fmt.Errorf("%q is no id of a result", e.ID)
	}
	if e.Size = int64(len(raw)); e.Size > maxPayload {
		return e, fmt.Errorf("store a result: %d bytes are more than the %d that are kept", e.Size, maxPayload)
	}
	e.Digest, e.Created = tool.Digest(raw), e.Created.UTC()
	ctx, cancel := s.within(e.Size)
	defer cancel()
	if err = s.outage.enter(e.Size); err == nil {
		if e.Name != "" {
			e.Version, err = s.nextVersion(ctx, e)
		}
		if err == nil {
			err = s.keep(ctx, &e, raw)
		}
		s.outage.leave(err == nil || !s.far)
	}
	if err != nil {
		err = fmt.Errorf("store a result: %w: %s", err, s.advice())
		s.unstored.Store(&err)
		return e, err
	}
	s.unstored.CompareAndSwap(s.unstored.Load(), nil)
	if s.written.Add(e.Stored) > s.cfg.MaxBytes/8 {
		select {
		case s.sweep <- struct{}{}:
		default: // one is due
		}
	}
	return e, nil
}

// advice says what to do where nothing can be stored.
func (s *Store) advice() string {
	if s.far {
		return fmt.Sprintf("see that %s can be reached, and that its credentials may read, write, list and delete",
			s.place)
	}
	return fmt.Sprintf("free space on the disk that holds %q, and make it writable", s.place)
}

// Problems says in sentences what is wrong with the last result that was to be stored, and with the
// last that was to be read. It names no result: who reads this may not be its caller.
func (s *Store) Problems() (all []string) {
	if err := s.unstored.Load(); err != nil {
		all = append(all, "the last large result was passed on whole, because it could not be stored: "+(*err).Error())
	}
	if err := s.unread.Load(); err != nil {
		why := "could not be read: " + root(*err).Error()
		if errors.As(*err, new(*CorruptError)) {
			why = "was changed since it was stored: the log says which"
		}
		all = append(all, "the last stored result that was asked for "+why)
	}
	return all
}

// root returns what has caused err: it names no files.
func root(err error) error {
	for {
		switch wrapped := err.(type) {
		case interface{ Unwrap() error }:
			if wrapped.Unwrap() == nil {
				return err
			}
			err = wrapped.Unwrap()
		case interface{ Unwrap() []error }:
			err = wrapped.Unwrap()[0]
		default:
			return err
		}
	}
}

// lock keeps payloads from being removed until unlock is called. Calls of this process take turns:
// the lock itself gives up after some seconds, and knows no order.
func (s *Store) lock() (unlock func(), err error) {
	s.storing.Lock()
	release, err := s.place.lock()
	if err != nil {
		s.storing.Unlock()
		return nil, err
	}
	return func() { release(); s.storing.Unlock() }, nil
}

// keep writes the payload and its entry.
func (s *Store) keep(ctx context.Context, e *Entry, raw []byte) error {
	err := s.place.write(ctx, payloadKey(*e), false, func(f io.Writer) (err error) {
		e.Stored, err = s.encode(ctx, f, e.Digest, raw)
		return err
	})
	if err != nil {
		return err
	}
	if dir, ok := s.place.(directory); ok && s.seal == nil && len(e.Text) > 0 {
		if dir.write(ctx, textKey(*e), false, e.writeText) == nil {
			e.File, e.Stored = dir.path(textKey(*e)), e.Stored+int64(len(e.Text))
		}
	}
	return s.putEntry(ctx, indexKey(e.ID), false, *e)
}

func (e Entry) writeText(f io.Writer) error {
	_, err := f.Write(e.Text)
	return err
}

func (s *Store) putEntry(ctx context.Context, key string, once bool, e Entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return s.place.write(ctx, key, once, func(f io.Writer) error {
		_, err := f.Write(text)
		return err
	})
}

// Entry returns what is known of a stored result, also of an expired one, or ErrUnknown.
func (s *Store) Entry(id tool.ResultID) (e Entry, err error) {
	if !isID(id) {
		return e, ErrUnknown
	}
	ctx, cancel := s.within(0)
	defer cancel()
	if e, err = s.readEntry(ctx, indexKey(id)); errors.Is(err, ErrUnknown) {
		e, err = s.readEntry(ctx, goneKey(id))
	}
	if err != nil && !errors.Is(err, ErrUnknown) {
		s.unread.Store(&err)
	}
	return e, err
}

// read reads a small object.
func (s *Store) read(ctx context.Context, key string) ([]byte, error) {
	f, err := s.place.open(ctx, key)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	return text, errors.Join(err, f.Close())
}

func (s *Store) readEntry(ctx context.Context, key string) (e Entry, err error) {
	text, err := s.read(ctx, key)
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
		return Entry{}, &CorruptError{s.at(key), err}
	}
	return e, nil
}

// Read calls use with the payload of e, whose memory is use's while it runs. It returns the error
// of use, an *ExpiredError or a *CorruptError, or says why the payload cannot be read now.
func (s *Store) Read(e Entry, use func(raw []byte) error) error {
	if e.Expired != nil {
		return &ExpiredError{e}
	}
	raw, done, err := s.fetch(e)
	if err != nil {
		if now, entryErr := s.Entry(e.ID); entryErr == nil && now.Expired != nil {
			return &ExpiredError{now} // a moment ago
		}
		s.unread.Store(&err)
		return err
	}
	defer done()
	s.unread.CompareAndSwap(s.unread.Load(), nil)
	return use(raw)
}

// fetch returns the payload of e, which its caller has in memory until done.
func (s *Store) fetch(e Entry) (raw []byte, done func(), err error) {
	ctx, cancel := s.within(e.Size)
	defer cancel()
	done = func() {}
	if e.Size > smallPayload {
		if err := enter(ctx, s.reading); err != nil {
			return nil, nil, fmt.Errorf("read a stored result: %w", err)
		}
		done = func() { <-s.reading }
	}
	if raw, err = s.load(ctx, e); err != nil {
		done()
	}
	return raw, done, err
}

// isID keeps ids out that could lead elsewhere.
func isID(id tool.ResultID) bool {
	rest, ok := strings.CutPrefix(string(id), "res_")
	if rest = strings.Replace(rest, ".", "", 1); !ok { // an artifact has one
		rest, ok = strings.CutPrefix(string(id), "inp_")
	}
	return ok && rest != "" && len(rest) <= 64 && strings.Trim(rest, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// The keys of objects begin with these.
const (
	indexPrefix = "index/" // entries
	gonePrefix  = "gone/"  // entries of expired results
	bytesPrefix = "bytes/" // payloads
	namesPrefix = "names/" // versions of artifacts

	entrySuffix = ".json"
)

func indexKey(id tool.ResultID) string { return indexPrefix + string(id) + entrySuffix }
func goneKey(id tool.ResultID) string  { return gonePrefix + string(id) + entrySuffix }

// payloadKey is where the payload of e is. Other bytes under the same id, as of a task, have another
// place: until the new entry is there, the old one counts.
func payloadKey(e Entry) string { return bytesPrefix + string(e.ID) + "-" + e.Digest[:8] }

// textKey is where Entry.Text is.
func textKey(e Entry) string { return payloadKey(e) + ".txt" }

// at says where an object is.
func (s *Store) at(key string) string { return s.place.String() + "/" + key }

func isHex(digest string) bool {
	return len(digest) == 64 && strings.Trim(digest, "0123456789abcdef") == ""
}
