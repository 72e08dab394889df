package cmdline

import (
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/network"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// Uses are the uses of credentials at one time.
type Uses struct {
	at   time.Time
	uses []control.CredentialUse
}

// UsesNow returns the uses of the credentials of a network.
func UsesNow(recent network.Recent) Uses { return Uses{ui.Now(), recent.Uses} }

// FailedSince reports whether the server of a credential has failed, or was silent, since the time of u. A running network also keeps the failures
// of earlier commands, and of an agent that runs beside a command.
func (u Uses) FailedSince(recent network.Recent, name string) bool {
	return u.failedSince(useOf(recent.Uses, name), ui.Now())
}

func (u Uses) failedSince(after control.CredentialUse, now time.Time) bool {
	before := useOf(u.uses, after.Name)
	if after.Requests <= before.Requests {
		return false
	}
	ended := after.Silent != before.Silent && after.Silent <= now.Sub(u.at)
	waits := !after.Since.Before(u.at) && now.Sub(after.Since) >= control.SilentAfter
	return after.Status != 0 || ended || waits
}

// useOf returns the use of a credential, which is zero for an unknown one.
func useOf(uses []control.CredentialUse, name string) (u control.CredentialUse) {
	if i := slices.IndexFunc(uses, func(u control.CredentialUse) bool { return u.Name == name }); i >= 0 {
		u = uses[i]
	}
	return u
}
