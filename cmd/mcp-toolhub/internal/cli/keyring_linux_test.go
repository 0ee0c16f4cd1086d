//go:build e2e

package cli

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
)

// secretService is a keyring on a message bus of its own, as desktops have one.
type secretService struct {
	conn *dbus.Conn

	mu    sync.Mutex
	items []*secretItem
}

type secretItem struct {
	path       dbus.ObjectPath
	attributes map[string]string
	secret     busSecret
}

// busSecret is a secret on the wire.
type busSecret struct {
	Session           dbus.ObjectPath
	Parameters, Value []byte
	ContentType       string
}

const secretsPath = "/org/freedesktop/secrets"

// startSecretService returns a keyring, and the address of its bus.
func startSecretService(t *testing.T) (*secretService, string) {
	t.Helper()
	program, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skip("there is no dbus-daemon")
	}
	dir, err := os.MkdirTemp("", "bus") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	bus := exec.CommandContext(t.Context(), program, "--session", "--nofork", "--nopidfile", "--print-address=1", "--address=unix:path="+filepath.Join(dir, "bus"))
	out, err := bus.StdoutPipe()
	if err == nil {
		err = bus.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = bus.Process.Kill()
		_ = bus.Wait()
		_ = os.RemoveAll(dir)
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the bus has no address")
	}
	address := lines.Text()
	s := &secretService{}
	if s.conn, err = dbus.Connect(address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.conn.Close() })
	for iface, path := range map[string]dbus.ObjectPath{"org.freedesktop.Secret.Service": secretsPath,
		"org.freedesktop.Secret.Collection": secretsPath + "/aliases/default", "org.freedesktop.Secret.Session": secretsPath + "/session/1"} {
		if err := s.conn.Export(s, path, iface); err != nil {
			t.Fatal(err)
		}
	}
	if reply, err := s.conn.RequestName("org.freedesktop.secrets", dbus.NameFlagDoNotQueue); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatalf("own the name: %v, %v", reply, err)
	}
	return s, address
}

// OpenSession is of org.freedesktop.Secret.Service.
func (s *secretService) OpenSession(string, dbus.Variant) (dbus.Variant, dbus.ObjectPath, *dbus.Error) {
	return dbus.MakeVariant(""), secretsPath + "/session/1", nil
}

// Unlock is of org.freedesktop.Secret.Service.
func (s *secretService) Unlock(objects []dbus.ObjectPath) ([]dbus.ObjectPath, dbus.ObjectPath, *dbus.Error) {
	return objects, "/", nil
}

// SearchItems is of org.freedesktop.Secret.Collection.
func (s *secretService) SearchItems(attributes map[string]string) ([]dbus.ObjectPath, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []dbus.ObjectPath{}
	for _, one := range s.items {
		if maps.Equal(one.attributes, attributes) {
			found = append(found, one.path)
		}
	}
	return found, nil
}

// CreateItem is of org.freedesktop.Secret.Collection.
func (s *secretService) CreateItem(properties map[string]dbus.Variant, secret busSecret, _ bool) (item, prompt dbus.ObjectPath, _ *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := &secretItem{path: dbus.ObjectPath(fmt.Sprintf("%s/item/%d", secretsPath, len(s.items))), secret: secret}
	_ = properties["org.freedesktop.Secret.Item.Attributes"].Store(&one.attributes)
	if err := s.conn.Export(one, one.path, "org.freedesktop.Secret.Item"); err != nil {
		return "/", "/", dbus.MakeFailedError(err)
	}
	s.items = append(s.items, one)
	return one.path, "/", nil
}

// Close is of org.freedesktop.Secret.Session.
func (s *secretService) Close() *dbus.Error { return nil }

// GetSecret is of org.freedesktop.Secret.Item.
func (i *secretItem) GetSecret(session dbus.ObjectPath) (busSecret, *dbus.Error) {
	secret := i.secret
	secret.Session = session
	return secret, nil
}

// keys are the keys that the keyring holds.
func (s *secretService) keys() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.items {
		all = append(all, string(one.secret.Value))
	}
	return all
}

// TestKeyOfSignInsInTheKeyring signs in with the key in the system's keyring, moves a key there that was beside the file, and does without
// a keyring.
func TestKeyOfSignInsInTheKeyring(t *testing.T) {
	t.Parallel()
	ring, address := startSecretService(t)
	auth, config := guardedServer(t, nil)
	withRing := config + "hub: {sign_in_key: keyring}\n"
	check := func(text string, code, wanted exitCode, has ...string) {
		t.Helper()
		for _, one := range has {
			if !strings.Contains(text, one) {
				t.Errorf("%q is missing", one)
			}
		}
		if code != wanted {
			t.Errorf("exit code %d", code)
		}
	}
	fresh := newSignInHome(t, withRing)
	keyFile := func(h signInHome) bool {
		_, err := os.Stat(filepath.Join(h.dir, "state", "mcp-toolhub", signin.FileName+".key"))
		return err == nil
	}

	fresh.env = []string{"DBUS_SESSION_BUS_ADDRESS=unix:path=" + filepath.Join(fresh.dir, "none")}
	text, code := fresh.run(t, "login", "s")
	check(text, code, exitFailure, "keep the sign-in: the system keyring: ", "hub.sign_in_key: file")
	if n := len(auth.Requests("/authorize")); n != 0 || keyFile(fresh) {
		t.Errorf("a person was asked %d times before that", n)
	}

	fresh.env = []string{"DBUS_SESSION_BUS_ADDRESS=" + address}
	text, code = fresh.run(t, "login", "s")
	check(text, code, exitOK, "mcp.s.echo")
	keys := ring.keys()
	if len(keys) != 1 || keyFile(fresh) {
		t.Fatalf("the keyring holds %d keys, and the directory one: %v", len(keys), keyFile(fresh))
	}
	if key, err := base64.StdEncoding.DecodeString(keys[0]); err != nil || len(key) != 32 {
		t.Errorf("a key of %d bytes, %v", len(key), err)
	}
	text, code = fresh.run(t, "doctor", "s")
	check(text, code, exitOK, "signed in at "+auth.Issuer)
	fresh.env = nil
	text, code = fresh.run(t, "doctor", "s")
	check(text, code, exitNotReady, "the system keyring: ")

	moved := newSignInHome(t, config)
	text, code = moved.run(t, "login", "s")
	check(text, code, exitOK, "mcp.s.echo")
	if !keyFile(moved) {
		t.Error("without a keyring the key is not beside the file")
	}
	if err := os.WriteFile(moved.file, []byte(withRing), 0o600); err != nil {
		t.Fatal(err)
	}
	moved.env = []string{"DBUS_SESSION_BUS_ADDRESS=" + address}
	text, code = moved.run(t, "doctor", "s")
	check(text, code, exitOK, "signed in at "+auth.Issuer)
	if n := len(ring.keys()); n != 2 || keyFile(moved) {
		t.Errorf("the key has not moved: %d in the keyring, beside the file: %v", n, keyFile(moved))
	}
	text, code = moved.run(t, "logout", "s")
	check(text, code, exitOK, "signed out")
}
