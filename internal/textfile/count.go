package textfile

import "strconv"

// Count writes a number of things: Count(1, "tool") is "1 tool", Count(1200, "tool") is "1,200 tools".
func Count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return Grouped(n) + " " + thing
}

// Grouped writes a number as people read it: 12,345.
func Grouped[N int | int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
