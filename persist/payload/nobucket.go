//go:build !clouds

package payload

import (
	"context"
	"errors"
)

const withClouds = false

func openBucket(context.Context, string) (place, error) {
	return nil, errors.New("this build has no drivers for buckets: use mcp-toolhub-buckets")
}
