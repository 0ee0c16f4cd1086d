package lookup

import (
	"testing"
	"time"
)

func TestParseWhen(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 10, 30, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"2h": "2026-03-04T08:30:00Z", "1h30m": "2026-03-04T09:00:00Z", "3d": "2026-03-01T10:30:00Z",
		"2 hours ago": "2026-03-04T08:30:00Z", "1 day ago": "2026-03-03T10:30:00Z", "2 weeks": "2026-02-18T10:30:00Z",
		"today": "2026-03-04T00:00:00Z", "Yesterday": "2026-03-03T00:00:00Z", "2026-01-02": "2026-01-02T00:00:00Z",
		"2026-01-02 03:04": "2026-01-02T03:04:00Z", "2026-01-02T03:04:05+01:00": "2026-01-02T02:04:05Z", "": "",
		"h": "", "-1h": "", "next week": "", "2 moons": "", "99999d": "",
	} {
		at, err := ParseWhen(text, now)
		if got := at.UTC().Format(time.RFC3339); (want == "" || got != want) && (want != "" || err == nil) {
			t.Errorf("%q: %s, %v, not %q", text, got, err, want)
		}
	}
}
