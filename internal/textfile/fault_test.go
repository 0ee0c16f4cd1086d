package textfile_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	faults := textfile.Faults{
		{File: "f", Position: textfile.At(2, 9), Message: "third"},
		{File: "f", Position: textfile.At(1, 1), Key: "a.b", Message: "first", Hint: "do this"},
		{File: "f", Position: textfile.At(2, 3), Key: "c", Message: "second"},
	}.Sort()
	want := "f:1:1: a.b: first; do this\nf:2:3: c: second\nf:2:9: third"
	if got := faults.Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var one textfile.Fault
	if err := fmt.Errorf("read: %w", faults); !errors.As(err, &one) || one.Message != "first" {
		t.Errorf("errors.As finds %+v", one)
	}
}
