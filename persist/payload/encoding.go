package payload

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/klauspost/compress/zstd"
)

// The header of a payload's file: what it is, and how the rest is written.
const (
	plainHeader  = "thp1z" // zstd
	sealedHeader = "thp1s" // zstd, sealed
)

// window bounds the memory of an encoder and of a decoder, in bytes.
const window = 1 << 20

// newEncoder makes an encoder. They are reused: a new one takes more memory than most payloads.
func newEncoder() any {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(window),
		zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return e
}

// encode writes the payload's file of raw to f, and returns its size.
func (s *Store) encode(ctx context.Context, f io.Writer, digest string, raw []byte) (size int64, err error) {
	if err := enter(ctx, s.packing); err != nil {
		return 0, err
	}
	defer func() { <-s.packing }()
	count := &counter{to: f}
	if s.seal == nil {
		if _, err := io.WriteString(count, plainHeader); err != nil {
			return 0, err
		}
		err = s.pack(count, raw)
		return count.size, err
	}
	var packed bytes.Buffer
	if err := s.pack(&packed, raw); err != nil {
		return 0, err
	}
	// bound to its digest: no other payload can stand in its place
	_, err = count.Write(s.seal.Seal([]byte(sealedHeader), nil, packed.Bytes(), []byte(digest)))
	return count.size, err
}

// pack compresses raw.
func (s *Store) pack(to io.Writer, raw []byte) error {
	e := s.encoders.Get().(*zstd.Encoder)
	defer s.encoders.Put(e)
	e.Reset(to)
	defer e.Reset(nil)
	_, err := e.Write(raw)
	return errors.Join(err, e.Close())
}

// counter counts what is written.
type counter struct {
	to   io.Writer
	size int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.size += int64(n)
	return n, err
}

// enter takes a place in a room, which its caller gives back.
func enter(ctx context.Context, room chan struct{}) error {
	select {
	case room <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// load returns the payload of e. With an error, which may be a *CorruptError, it is not what was stored.
func (s *Store) load(ctx context.Context, e Entry) ([]byte, error) {
	key := payloadKey(e)
	f, err := s.place.open(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &CorruptError{s.at(key), errors.New("the file is gone")}
	}
	if err != nil {
		return nil, fmt.Errorf("read a stored result: %w", err)
	}
	defer f.Close()
	raw := bytes.NewBuffer(make([]byte, 0, int(e.Size)+bytes.MinRead)) // so that it does not grow
	from := &reads{from: f}
	if err := s.decode(raw, from, e); err != nil {
		if from.err != nil { // what came so far says nothing of the rest
			return nil, fmt.Errorf("read a stored result: %w", from.err)
		}
		return nil, &CorruptError{s.at(key), err}
	}
	return raw.Bytes(), nil
}

// reads remembers why nothing more could be read.
type reads struct {
	from io.Reader
	err  error // but for io.EOF
}

func (r *reads) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// decode writes what the file f of e holds to to: at most one byte more than e.Size, whatever the file says.
func (s *Store) decode(to io.Writer, f io.Reader, e Entry) error {
	in := bufio.NewReaderSize(f, 64<<10)
	header := make([]byte, len(plainHeader))
	if _, err := io.ReadFull(in, header); err != nil {
		return err
	}
	from := io.Reader(in)
	switch {
	case string(header) == sealedHeader && s.seal != nil:
		sealed, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		packed, err := s.seal.Open(sealed[:0], nil, sealed, []byte(e.Digest))
		if err != nil {
			return errSealed
		}
		from = bytes.NewReader(packed)
	case string(header) == sealedHeader:
		return errors.New("it is sealed with a key that is not configured")
	case string(header) != plainHeader:
		return errors.New("it is no stored result")
	}
	d, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return err
	}
	defer d.Close()
	digest := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, digest), io.LimitReader(d, e.Size+1))
	switch {
	case err != nil:
		return err
	case n != e.Size:
		return fmt.Errorf("it has not the %d bytes that were stored", e.Size)
	case hex.EncodeToString(digest.Sum(nil)) != e.Digest:
		return errors.New("its digest is another one")
	}
	return nil
}
