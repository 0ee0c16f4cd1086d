package payload

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// patience is what a bucket may take for one result, besides a second for each MiB.
const patience = 10 * time.Second

// restFor is how long a bucket that has failed is left alone. Results that come meanwhile are not
// stored, and nobody waits.
const restFor = 2 * time.Second

// schemes are those of buckets.
var schemes = [...]string{"s3", "gs", "azblob"}

// CheckURL says what is wrong with the URL of a bucket, without a look at the bucket. It names
// nothing of the URL but its scheme.
func CheckURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return errors.New("is no URL")
	case !slices.Contains(schemes[:], u.Scheme):
		return fmt.Errorf("names no place for results: there are directories, and the schemes file, %s",
			strings.Join(schemes[:], ", "))
	case !withClouds:
		return fmt.Errorf("needs a driver for %s:// that this build does not have: use mcp-toolhub-buckets", u.Scheme)
	case u.Host == "":
		return errors.New("names no bucket")
	case u.User != nil:
		return errors.New("has a name or a password in it: the drivers take credentials from the environment")
	}
	return nil
}

// allowed bounds what a bucket may take for a payload of that size.
func allowed(size int64) time.Duration { return patience + time.Duration(size>>20)*time.Second }

// outage keeps calls from waiting for a bucket that has failed: one of them tries it at a time.
type outage struct {
	next atomic.Int64 // when the bucket may be tried again, in nanoseconds since 1970; 0: at any time
}

var errOutage = errors.New("the bucket has just failed, and is tried again soon")

// enter returns an error where the bucket is not to be tried for a payload of that size.
func (o *outage) enter(size int64) error {
	next, now := o.next.Load(), time.Now()
	if next == 0 || now.UnixNano() >= next && o.next.CompareAndSwap(next, now.Add(allowed(size)).UnixNano()) {
		return nil
	}
	return errOutage
}

// leave follows enter, once the bucket was tried.
func (o *outage) leave(well bool) {
	switch {
	case !well:
		o.next.Store(time.Now().Add(restFor).UnixNano())
	case o.next.Load() != 0:
		o.next.Store(0)
	}
}
