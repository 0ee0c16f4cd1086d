//go:build e2e

package sessionid

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestRecordIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := issuer(t, key, dir)
		bob := Holder{Profile: "default", Caller: "bob"}
		ofBob, _ := begin(t, b, bob, Session{})
		first, s := begin(t, b, ann, Session{})
		if err := b.End(s, ann); err != nil {
			t.Fatal(err)
		}
		open, _ := begin(t, b, ann, Session{}) // as old as the one that was ended first
		time.Sleep(time.Minute)
		young, _ := begin(t, b, ann, Session{})
		for range maxEnded + lookAfter {
			_, s := begin(t, b, ann, Session{})
			if err := b.End(s, ann); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if n := len(recorded(t, b)); n > maxEnded+lookAfter {
			t.Errorf("%d sessions are recorded", n)
		}
		for name, id := range map[string]string{"ended": first, "as old as one that is forgotten": open, "young": young} {
			if _, err := b.Resume(id, ann); !errors.Is(err, ErrUnknown) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := b.Resume(ofBob, bob); err != nil {
			t.Errorf("another caller's session: %v", err)
		}
		last, s := begin(t, b, ann, Session{})
		if _, err := b.Resume(last, ann); err != nil {
			t.Errorf("the last session: %v", err)
		}
		if err := b.End(s, ann); err != nil {
			t.Fatal(err)
		}
		time.Sleep(Lifetime + time.Second)
		if _, err := b.Resume(ofBob, bob); !errors.Is(err, ErrUnknown) {
			t.Errorf("an old session: %v", err)
		}
		if left := recorded(t, issuer(t, key, dir)); len(left) != 0 {
			t.Errorf("%d files are left: %.100v", len(left), left)
		}
	})
}

// recorded are the files about ann's sessions.
func recorded(t *testing.T, b *Issuer) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(b.of(ann))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
