package policy

import (
	"bytes"
	"context"
	"strings"

	"github.com/git-airlock/git-airlock/identity"
)

// ghostLeak looks for the agent's invented author in messages, which land byte for byte.
type ghostLeak struct {
	commitOnly
	names []string
}

func newGhostLeak(g identity.Ghost) ghostLeak {
	var l ghostLeak
	for _, name := range []string{g.Name, g.Mail} {
		if name != "" {
			l.names = append(l.names, strings.ToLower(name))
		}
	}
	if g.Name != "" {
		// The address that git makes up for who sets none.
		l.names = append(l.names, g.Login()+"@"+g.Hostname())
	}
	return l
}

func (ghostLeak) describe() Description {
	return documented("ghost-leak", Flag, "the agent's invented name or address in a message")
}

func (l ghostLeak) commit(_ context.Context, in *inspection, r *report) error {
	message := bytes.ToLower(in.Message)
	for _, name := range l.names {
		if bytes.Contains(message, []byte(name)) {
			r.at("", "the message names %s", name)
		}
	}
	return nil
}
