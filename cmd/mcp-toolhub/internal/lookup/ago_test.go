package lookup

import (
	"testing"
	"time"
)

func TestParseWhen(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 10, 30, 0, 0, time.UTC) // a Wednesday
	for text, want := range map[string]string{
		"now": "2026-03-04T10:30:00Z", "2h": "2026-03-04T08:30:00Z", "1h30m": "2026-03-04T09:00:00Z",
		"3d":          "2026-03-01T10:30:00Z",
		"2 hours ago": "2026-03-04T08:30:00Z", "1 day ago": "2026-03-03T10:30:00Z", "2 weeks": "2026-02-18T10:30:00Z",
		"today": "2026-03-04T00:00:00Z", "Yesterday": "2026-03-03T00:00:00Z", "monday": "2026-03-02T00:00:00Z",
		"wednesday": "2026-03-04T00:00:00Z", "last fri": "", "fri": "2026-02-27T00:00:00Z",
		"last friday": "2026-02-27T00:00:00Z",
		"last week":   "2026-02-23T00:00:00Z", "This week": "2026-03-02T00:00:00Z",
		"last month": "2026-02-01T00:00:00Z",
		"this month": "2026-03-01T00:00:00Z",
		"09:30":      "2026-03-04T09:30:00Z", "11:00": "2026-03-03T11:00:00Z", "2026-01-02": "2026-01-02T00:00:00Z",
		"2026-01-02 03:04": "2026-01-02T03:04:00Z", "2026-01-02T03:04:05+01:00": "2026-01-02T02:04:05Z", "": "",
		"h": "", "-1h": "",
		"next week": "", "2 moons": "", "99999d": "",
	} {
		at, err := ParseWhen(text, now)
		if got := at.UTC().Format(time.RFC3339); (want == "" || got != want) && (want != "" || err == nil) {
			t.Errorf("%q: %s, %v, not %q", text, got, err, want)
		}
	}
}

// TestLastMonthOfLongMonths: the month before the last day of a long one is not that month again,
// and Sunday ends a week.
func TestLastMonthOfLongMonths(t *testing.T) {
	t.Parallel()
	for now, want := range map[string][2]string{"2026-03-31": {"2026-02-01", "2026-03-23"},
		"2026-01-04": {"2025-12-01", "2025-12-22"},
		"2026-11-02": {"2026-10-01", "2026-10-26"}} {
		at, err := time.Parse(time.DateOnly, now)
		if err != nil {
			t.Fatal(err)
		}
		for i, said := range []string{"last month", "last week"} {
			if got, err := ParseWhen(said, at.Add(23*time.Hour)); err != nil ||
				got.Format(time.DateTime) != want[i]+" 00:00:00" {
				t.Errorf("%s on %s is %s, %v, want %s", said, now, got, err, want[i])
			}
		}
	}
}
