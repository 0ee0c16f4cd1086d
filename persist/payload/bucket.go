//go:build clouds

package payload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"strings"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://
	"gocloud.dev/gcerrors"
)

const withClouds = true

// bucket is a place in a cloud. Nobody can lock it, and nobody has to: each result has objects of its
// own, and of two hubs that write one at most once the second is told.
type bucket struct {
	blobs *blob.Bucket
	name  string
}

// openBucket opens a bucket, which ctx ends. It asks the bucket nothing.
func openBucket(ctx context.Context, raw string) (place, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("it has no URL")
	}
	if query := u.Query(); u.Scheme == "s3" && !query.Has(responseChecksum) {
		// each payload has a digest: what was changed is to be told from what cannot be read
		query.Set(responseChecksum, "when_required")
		u.RawQuery = query.Encode()
	}
	name := u.Scheme + "://" + u.Host
	blobs, err := blob.OpenBucket(ctx, u.String())
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), u.String(), name))
	}
	return bucket{blobs, name}, nil
}

// responseChecksum is the parameter of S3 that says whether the driver checks its own checksums.
const responseChecksum = "response_checksum_validation"

func (b bucket) write(ctx context.Context, key string, once bool, fill func(io.Writer) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := b.blobs.NewWriter(ctx, key, &blob.WriterOptions{ContentType: "application/octet-stream", IfNotExist: once,
		MaxConcurrency: 1})
	if err != nil {
		return fault("write", err)
	}
	if err := fill(w); err != nil {
		cancel() // or Close would keep what was written so far
		_ = w.Close()
		return fault("write", err)
	}
	return fault("write", w.Close())
}

func (b bucket) open(ctx context.Context, key string) (io.ReadCloser, error) {
	r, err := b.blobs.NewReader(ctx, key, nil)
	if err != nil {
		return nil, fault("read", err)
	}
	return bucketReader{r}, nil
}

// bucketReader says without secrets why it fails.
type bucketReader struct{ *blob.Reader }

func (r bucketReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = fault("read", err)
	}
	return n, err
}

func (b bucket) list(ctx context.Context, prefix string, each func(object) error) error {
	for all := b.blobs.List(&blob.ListOptions{Prefix: prefix}); ; {
		o, err := all.Next(ctx)
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fault("list", err)
		}
		if err := each(object{key: o.Key, size: o.Size, changed: o.ModTime, sum: string(o.MD5)}); err != nil {
			return err
		}
	}
}

func (b bucket) remove(ctx context.Context, key string) error {
	return ignoreGone(fault("remove", b.blobs.Delete(ctx, key)))
}

func (b bucket) lock() (unlock func(), err error) { return func() {}, nil }

func (b bucket) String() string { return b.name }

func (b bucket) close() error { return b.blobs.Close() }

// fault says why a bucket refuses. It leaves out what the libraries add: addresses with their
// queries, which may hold signatures.
func fault(what string, err error) error {
	if err == nil {
		return nil
	}
	code := gcerrors.Code(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: the bucket does not answer: %w", what, context.DeadlineExceeded)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", what, context.Canceled)
	case code == gcerrors.NotFound && what != "write": // or the bucket itself is missing
		return fmt.Errorf("%s: %w", what, fs.ErrNotExist)
	case code == gcerrors.FailedPrecondition:
		return fmt.Errorf("%s: %w", what, fs.ErrExist)
	}
	why, _, _ := strings.Cut(root(err).Error(), "\n")
	if api := interface {
		error
		ErrorCode() string
	}(nil); errors.As(err, &api) {
		why = api.ErrorCode()
	}
	return fmt.Errorf("%s: the bucket refuses: %s", what, why)
}
