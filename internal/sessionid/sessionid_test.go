package sessionid

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/seal"
)

var (
	key = bytes.Repeat([]byte{7}, seal.KeySize)
	ann = Holder{Profile: "default", Caller: "ann", Secret: "secret-of-ann-0123"}
)

func issuer(t testing.TB, key []byte, dir string) *Issuer {
	t.Helper()
	b, err := Open(key, dir)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func begin(t testing.TB, b *Issuer, h Holder, s Session) (string, Session) {
	t.Helper()
	id, s, err := b.New(h, s)
	if err != nil {
		t.Fatal(err)
	}
	return id, s
}

func TestAnotherBookOfTheKeyResumes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := issuer(t, key, dir)
	s := Session{ProtocolVersion: "2025-11-25", ClientName: "gemini", ClientVersion: "1.2", Capabilities: json.RawMessage(`{"roots":{}}`)}
	id, begun := begin(t, b, ann, s)
	got, err := issuer(t, key, dir).Resume(id, ann)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(begun) || got.Name == "" || got.ClientName != "gemini" {
		t.Errorf("resumed %+v, %v, want %+v", got, err, begun)
	}
	if other, _ := begin(t, b, ann, s); other == id {
		t.Error("two sessions have one id")
	}
	bob := Holder{Profile: "default", Caller: "bob", Secret: "secret-of-bob-0123"}
	for name, try := range map[string]func() (Session, error){
		"another key":     func() (Session, error) { return issuer(t, nil, dir).Resume(id, ann) },
		"no record":       func() (Session, error) { return issuer(t, key, "").Resume(id, ann) },
		"another caller":  func() (Session, error) { return b.Resume(id, bob) },
		"another profile": func() (Session, error) { return b.Resume(id, Holder{"other", ann.Caller, ann.Secret}) },
		"another secret":  func() (Session, error) { return b.Resume(id, Holder{ann.Profile, ann.Caller, "renewed"}) },
		"the name alone":  func() (Session, error) { return b.Resume(begun.Name, ann) },
		"nothing":         func() (Session, error) { return b.Resume("", ann) },
		"a changed id":    func() (Session, error) { return b.Resume("A"+id[1:], Holder{}) },
		"something long":  func() (Session, error) { return b.Resume(strings.Repeat(id, 100), ann) },
	} {
		if got, err := try(); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s resumes %+v, %v", name, got, err)
		}
	}
}

// Whatever a client says of itself, its id fits into a header.
func TestIDsAreBounded(t *testing.T) {
	t.Parallel()
	b := issuer(t, key, t.TempDir())
	long := Holder{Profile: strings.Repeat("p", 5000), Caller: strings.Repeat("c", 5000), Secret: strings.Repeat("s", 5000)}
	for name, s := range map[string]Session{
		"nothing":            {},
		"long names":         {ClientName: strings.Repeat("n", 1<<20), ClientVersion: strings.Repeat("v", 1<<20)},
		"control characters": {ClientName: strings.Repeat("\x01", 5000), ClientVersion: strings.Repeat("<", 5000)},
		"no UTF-8":           {ClientName: strings.Repeat("\xff", 5000), ClientVersion: strings.Repeat("€", 5000)},
		"large capabilities": {ClientName: strings.Repeat("\x01", 5000), ClientVersion: strings.Repeat("&", 5000), Capabilities: json.RawMessage(
			`{"experimental":{"x":"` + strings.Repeat("<", 5000) + `"},"roots":{},"elicitation":{"form":{},"url":{}},"sampling":{}}`)},
		"just too large": {Capabilities: json.RawMessage(`{"experimental":{"x":"` + strings.Repeat("x", maxPlain) + `"}}`)},
	} {
		s.ProtocolVersion = "2025-11-25"
		id, _ := begin(t, b, long, s)
		if len(id) > MaxLength {
			t.Errorf("%s: %d bytes", name, len(id))
		}
		got, err := b.Resume(id, long)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got.Capabilities != nil {
			t.Errorf("%s: capabilities %s", name, got.Capabilities)
		}
	}
}

func TestEndedSessionsStayGone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sessions")
	b := issuer(t, key, dir)
	kept, _ := begin(t, b, ann, Session{})
	id, s := begin(t, b, ann, Session{})
	if err := b.End(s, ann); err != nil {
		t.Fatal(err)
	}
	for range 2 { // again, after a restart
		if got, err := b.Resume(id, ann); !errors.Is(err, ErrUnknown) {
			t.Errorf("it resumes: %+v, %v", got, err)
		}
		if _, err := b.Resume(kept, ann); err != nil {
			t.Errorf("the other session: %v", err)
		}
		b = issuer(t, key, dir)
	}
	if err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(b.of(ann)), os.WriteFile(b.of(ann), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Resume(kept, ann); err == nil {
		t.Error("a record that cannot be read lets a session come back")
	}
}

func FuzzResume(f *testing.F) {
	b := issuer(f, key, f.TempDir())
	id, _ := begin(f, b, ann, Session{ClientName: "x"})
	f.Add(id[1:], "ann")
	f.Fuzz(func(t *testing.T, id, caller string) {
		if got, err := b.Resume(id, Holder{Caller: caller}); err == nil {
			t.Errorf("%q resumes %+v", id, got)
		}
	})
}
