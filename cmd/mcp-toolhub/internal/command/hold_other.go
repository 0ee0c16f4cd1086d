//go:build !linux

package command

import (
	"fmt"
	"os"
)

// hold looks at program and dir once more. Nothing can be started by a descriptor here.
func hold(program, dir string) (*held, error) {
	for _, path := range []string{program, dir} {
		f, err := os.Open(path)
		if err != nil {
			if _, statErr := os.Stat(path); statErr == nil { // a program need not be readable
				continue
			}
			return nil, fmt.Errorf("%w: %w", ErrStart, Cause(err))
		}
		err = unchanged(path, f)
		f.Close()
		if err != nil {
			return nil, err
		}
	}
	return &held{program: program, dir: dir}, nil
}
