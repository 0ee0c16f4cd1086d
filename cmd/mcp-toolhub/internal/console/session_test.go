package console

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// with is a request of the browser that has that secret.
func (s *sessions) with(secret string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, Path, nil)
	r.AddCookie(&http.Cookie{Name: s.cookie, Value: secret})
	return r
}

// TestSecretsEnd: addresses, sessions and codes are good for their time, and not longer.
func TestSecretsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSessions()
		late := s.invite()
		time.Sleep(inviteTime + time.Second)
		if _, ok := s.enter(late, "", ""); ok {
			t.Error("an old address opens the page")
		}
		own, ok := s.enter(s.invite(), "", "")
		if !ok {
			t.Fatal("a new address does not open the page")
		}
		o := s.of(s.with(own))
		code, err := s.code("")
		if o == nil || err != nil {
			t.Fatal(o, err)
		}
		time.Sleep(codeTime + time.Second)
		if err := s.unlock(o, code); err != errCode {
			t.Errorf("an old code: %v", err)
		}
		if code, err = s.code(o.name); err != nil || s.unlock(o, code) != nil || !s.mayAnswer(o, ApproveByCode) {
			t.Errorf("a new code: %v", err)
		}
		time.Sleep(sessionTime)
		if s.of(s.with(own)) != nil {
			t.Error("an old session is open")
		}
		if _, err := s.code(o.name); err != errNoSession {
			t.Errorf("a code for an old session: %v", err)
		}
	})
}

// TestManySessions: the hub keeps a bounded number of sessions, and the oldest one ends for a new one.
func TestManySessions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSessions()
		var all []string
		for range maxSessions + 2 {
			own, ok := s.enter(s.invite(), "", "")
			if !ok {
				t.Fatal("not let in")
			}
			all = append(all, own)
			time.Sleep(time.Second)
		}
		if s.of(s.with(all[0])) != nil || s.of(s.with(all[1])) != nil || s.of(s.with(all[2])) == nil || len(s.open) != maxSessions {
			t.Errorf("%d sessions are open", len(s.open))
		}
		if _, err := s.code(""); err != errNoSession {
			t.Errorf("a code without a name: %v", err)
		}
	})
}
