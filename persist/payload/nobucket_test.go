//go:build !clouds

package payload_test

import "testing"

func buckets() map[string]func(t testing.TB) testbed { return nil }
