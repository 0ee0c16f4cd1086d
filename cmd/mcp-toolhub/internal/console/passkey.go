package console

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
)

// passkeys are the passkeys of the person whose hub it is, in one file: public keys and names, no
// secret. It is safe for concurrent use, also by several hubs.
type passkeys struct {
	file   string
	person string
}

// owner is who has the passkeys, as the file holds it. It implements webauthn.User.
type owner struct {
	ID   []byte    `json:"user"` // tells authenticators of different state directories apart
	Keys []Passkey `json:"passkeys"`

	name string
	host string // whose passkeys count
}

// Passkey is a passkey of a page at one host.
type Passkey struct {
	Host       string              `json:"host"`
	Added      time.Time           `json:"added"`
	Credential webauthn.Credential `json:"credential"`
}

// Name tells a passkey from others.
func (p Passkey) Name() string {
	return base64.RawURLEncoding.EncodeToString(p.Credential.ID)
}

func (o *owner) WebAuthnID() []byte          { return o.ID }
func (o *owner) WebAuthnName() string        { return o.name }
func (o *owner) WebAuthnDisplayName() string { return o.name }
func (o *owner) WebAuthnCredentials() (all []webauthn.Credential) {
	for _, k := range o.Keys {
		if k.Host == o.host {
			all = append(all, k.Credential)
		}
	}
	return all
}

// maxPasskeys bounds the passkeys that are kept.
const maxPasskeys = 50

// of returns the owner, with the passkeys of one host.
func (p passkeys) of(host string) (*owner, error) {
	o := &owner{name: p.person, host: host}
	text, err := os.ReadFile(p.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		o.ID = make([]byte, 32)
		_, _ = rand.Read(o.ID) // never fails
		return o, nil
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(text, o); err != nil || len(o.ID) == 0 {
		return nil, fmt.Errorf("%s is damaged: remove it, and add your passkeys again", p.file)
	}
	return o, nil
}

// change changes the file.
func (p passkeys) change(host string, to func(*owner) error) error {
	unlock, err := statefile.Lock(p.file + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	o, err := p.of(host)
	if err != nil {
		return err
	}
	if err := to(o); err != nil {
		return err
	}
	text, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	return statefile.Write(p.file, append(text, '\n'))
}

var (
	errPlace = errors.New("passkeys need a name in the address: open the page with mcp-toolhub ui, which leads " +
		"to localhost or to hub.http.public_url")
	errCeremony = errors.New("the browser took too long, or did this before: try again")
	errNoKey    = errors.New("there is no passkey for this page: add one")
	errCloned   = errors.New("this passkey may have been copied: remove it under Sign-ins and secrets, and add " +
		"another one")
)

// host is the name under which the browser shows the page; "" for an IP address, for which there are no passkeys.
func (v *visit) host() string {
	host := v.r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if net.ParseIP(host) != nil || host != "" && host[0] == '[' {
		return ""
	}
	return host
}

// party is the page towards browsers and authenticators. The form that is answered comes from a
// page of its own origin: see signedIn.
func (v *visit) party() (*webauthn.WebAuthn, error) {
	origin, err := url.Parse(v.r.Header.Get("Origin"))
	if err != nil || origin.Host != v.r.Host || v.host() == "" {
		return nil, errPlace
	}
	limit := webauthn.TimeoutConfig{Enforce: true, Timeout: codeTime, TimeoutUVD: codeTime}
	return webauthn.New(&webauthn.Config{RPID: v.host(), RPDisplayName: "mcp-toolhub",
		RPOrigins:              []string{origin.String()},
		AuthenticatorSelection: protocol.AuthenticatorSelection{UserVerification: protocol.VerificationRequired},
		Timeouts:               webauthn.TimeoutsConfig{Login: limit, Registration: limit}})
}

// passkey takes a step with a passkey: add and use begin, and tell the browser's script what to ask
// the authenticator for; added and used take what that says.
func (v *visit) passkey() (*page, error) {
	if v.mode() != ApproveByPasskey {
		return nil, &fault{http.StatusForbidden, "hub.ui.approvals of the config is not passkey."}
	}
	answer, err := v.step(v.r.PathValue("step"))
	if errors.Is(err, errNothing) {
		return nil, err
	}
	if err != nil {
		v.Logger.Warn("a passkey was not taken", "session", v.session.name, "step", v.r.PathValue("step"), "error",
			detailed(err))
		http.Error(v.w, sentence(err.Error()), http.StatusConflict)
		return nil, nil
	}
	v.w.Header().Set("Content-Type", "application/json")
	return nil, json.NewEncoder(v.w).Encode(answer)
}

// step takes one of the four steps. answer is what the authenticator is asked for, or nil.
func (v *visit) step(step string) (answer any, err error) {
	party, err := v.party()
	if err != nil {
		return nil, err
	}
	switch step {
	case "add":
		return v.addPasskey(party)
	case "use":
		return v.usePasskey(party)
	case "added", "used":
	default:
		return nil, errNothing
	}
	began := v.sessions.began(v.session, step)
	if began == nil {
		return nil, errCeremony
	}
	if step == "added" {
		return nil, v.addedPasskey(party, began)
	}
	return nil, v.usedPasskey(party, began)
}

// detailed is the text of an error with what the library says beside it.
func detailed(err error) string {
	if p, ok := errors.AsType[*protocol.Error](err); ok {
		return p.Details + " " + p.DevInfo
	}
	return err.Error()
}

// addPasskey begins to add a passkey, for whoever has a code of a terminal.
func (v *visit) addPasskey(party *webauthn.WebAuthn) (any, error) {
	o, err := v.keys.of(v.host())
	if err != nil {
		return nil, err
	}
	if err := v.sessions.take(v.session, v.r.PostFormValue("code")); err != nil {
		return nil, err
	}
	there := webauthn.Credentials(o.WebAuthnCredentials()).CredentialDescriptors()
	options, began, err := party.BeginRegistration(o, webauthn.WithExclusions(there))
	if err != nil {
		return nil, err
	}
	v.sessions.begin(v.session, "added", began)
	return options, nil
}

func (v *visit) addedPasskey(party *webauthn.WebAuthn, began *webauthn.SessionData) error {
	said, err := protocol.ParseCredentialCreationResponseBytes([]byte(v.r.PostFormValue("said")))
	if err != nil {
		return err
	}
	return v.keys.change(v.host(), func(o *owner) error {
		if len(o.Keys) == 0 {
			o.ID = began.UserID // of which the authenticator was told
		}
		key, err := party.CreateCredential(o, *began, said)
		if err != nil {
			return err
		}
		if len(o.Keys) >= maxPasskeys {
			return fmt.Errorf("there are %d passkeys: remove one first", maxPasskeys)
		}
		o.Keys = append(o.Keys, Passkey{Host: o.host, Added: time.Now().UTC().Truncate(time.Second), Credential: *key})
		return nil
	})
}

func (v *visit) usePasskey(party *webauthn.WebAuthn) (any, error) {
	o, err := v.keys.of(v.host())
	if err != nil {
		return nil, err
	}
	if len(o.WebAuthnCredentials()) == 0 {
		return nil, errNoKey
	}
	options, began, err := party.BeginLogin(o)
	if err != nil {
		return nil, err
	}
	v.sessions.begin(v.session, "used", began)
	return options, nil
}

// usedPasskey lets the session answer approvals, if the authenticator has verified the person.
func (v *visit) usedPasskey(party *webauthn.WebAuthn, began *webauthn.SessionData) error {
	said, err := protocol.ParseCredentialRequestResponseBytes([]byte(v.r.PostFormValue("said")))
	if err != nil {
		return err
	}
	err = v.keys.change(v.host(), func(o *owner) error {
		key, err := party.ValidateLogin(o, *began, said)
		if err != nil {
			return err
		}
		if key.Authenticator.CloneWarning {
			return errCloned
		}
		for i := range o.Keys {
			if slices.Equal(o.Keys[i].Credential.ID, key.ID) {
				o.Keys[i].Credential = *key
			}
		}
		return nil
	})
	if err == nil {
		v.sessions.allow(v.session, ApproveByPasskey)
		v.sessions.say(v.session, mayAnswerNow)
	}
	return err
}

// forget removes a passkey.
func (v *visit) forget() (*page, error) {
	name := v.r.PathValue("name")
	err := v.keys.change("", func(o *owner) error {
		had := len(o.Keys)
		if o.Keys = slices.DeleteFunc(o.Keys, func(k Passkey) bool { return k.Name() == name }); len(o.Keys) == had {
			return ErrUnknown
		}
		return nil
	})
	if err != nil {
		return nil, wrong(err)
	}
	return &page{Redirect: Path + "secrets"}, nil
}
