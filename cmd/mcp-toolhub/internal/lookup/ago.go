package lookup

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseWhen reads a time as people say it: 2h, 3d, "2 hours ago", today, yesterday, 2026-11-22,
// "2026-11-22 09:30" or RFC 3339. A day is the beginning of that.
func ParseWhen(text string, now time.Time) (time.Time, error) {
	said := strings.ToLower(strings.Join(strings.Fields(text), " "))
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch said {
	case "today":
		return midnight, nil
	case "yesterday":
		return midnight.AddDate(0, 0, -1), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04",
		time.DateOnly} {
		if at, err := time.ParseInLocation(layout, strings.ToUpper(said), now.Location()); err == nil {
			return at, nil
		}
	}
	if span, ok := parseSpan(strings.TrimSuffix(said, " ago")); ok {
		return now.Add(-span), nil
	}
	return time.Time{},
		fmt.Errorf(`%q is no time: write 2h, 3d, "2 hours ago", today, yesterday, 2026-11-22 or "2026-11-22 09:30"`, text)
}

// parseSpan reads a span of time: "90m", "1h30m", "3d", "2 weeks".
func parseSpan(text string) (time.Duration, bool) {
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return d, true
	}
	digits := strings.TrimRight(text, " abcdefghijklmnopqrstuvwxyz")
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return 0, false
	}
	unit := strings.TrimSpace(text[len(digits):])
	if len(unit) > 3 {
		unit = strings.TrimSuffix(unit, "s")
	}
	const day = 24 * time.Hour
	units := map[string]time.Duration{"sec": time.Second, "second": time.Second, "min": time.Minute,
		"minute": time.Minute, "hour": time.Hour,
		"d": day, "day": day, "w": 7 * day, "week": 7 * day}
	one, ok := units[unit]
	return time.Duration(n) * one, ok
}
