//go:build !unix

package target

const noFollow = 0
