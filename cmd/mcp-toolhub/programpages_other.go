//go:build !linux

package main

// forgetProgram does something on Linux only.
func forgetProgram() {}
