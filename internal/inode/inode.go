// Package inode says what the system knows of a file beside its content: how many names it has, and whose it is.
package inode

import "errors"

// ErrOwner is wrapped by the error of KeepOwner where the system does not allow it.
var ErrOwner = errors.New("the owner of the file cannot be kept")
