package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/internal/connuser"
	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// giveToken adds a token to a config without any, where every user of this machine could call the
// hub at the address listen otherwise. It returns the settings that hold then. If a client reaches
// the hub without a token already, it only warns: that client goes on working.
func giveToken(ctx context.Context, a *app, s *config.Settings, listen string) (*config.Settings, error) {
	if len(s.Downstream.Auth.Tokens) > 0 || connuser.Known() {
		return s, nil
	}
	edit := configEdit{app: a}
	connected, err := (&importCmd{configEdit: edit}).found()
	if err != nil {
		return nil, err
	}
	isOwn := address{s.Downstream.HTTP.PublicURL, listen}.has
	for _, have := range connected {
		if slices.ContainsFunc(append([]string{have.URL}, have.Args...), isOwn) &&
			!strings.Contains(fmt.Sprint(have.Headers, have.Args), "Authorization") {
			a.std.warn("the hub gets no token, because %s connects without one: add hub.auth.tokens, and connect "+
				"that client again",
				have.Origin)
			return s, nil
		}
	}
	if err := edit.find(false); err != nil {
		return nil, err
	}
	made := map[string]string{}
	name := edit.keep(made)("hub-token", rand.Text())
	after, err := edit.file.Put(splice.Place{Path: []string{"hub", "auth", "tokens"}, List: true}, tool.Local,
		splice.Object{{Key: "token", Value: "${secret:" + name + "}"}})
	if err == nil {
		_, err = edit.check(after, made)
	}
	if err == nil {
		err = edit.store(after, made)
	}
	if err != nil {
		return nil, fmt.Errorf("give the hub a token: %w", err)
	}
	a.std.note(
		"%s: added hub.auth.tokens, because every user of this machine could call the hub. connect --http gives "+
			"clients the token",
		edit.target)
	return a.load(ctx)
}
