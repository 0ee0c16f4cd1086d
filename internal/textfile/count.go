package textfile

import "fmt"

// Count returns a number of things: "1 server", "2 servers".
func Count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
