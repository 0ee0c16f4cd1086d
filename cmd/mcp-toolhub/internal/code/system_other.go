//go:build !unix

package code

const openFlags = 0
