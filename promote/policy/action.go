package policy

import (
	"fmt"

	"github.com/git-airlock/git-airlock/gitops"
)

// Action is what happens to a commit in which a rule finds something. The zero Action is the strictest.
type Action int

// The actions, strictest first.
const (
	Hold Action = iota // it waits, and what builds on it
	Flag               // it lands, and its note names the rule
	Off                // the rule does not look
)

var actionNames = map[Action]string{Hold: "hold", Flag: "flag", Off: "off"}

func (a Action) String() string { return actionNames[a] }

// ParseAction reads "hold", "flag" or "off".
func ParseAction(text string) (Action, error) {
	for a, name := range actionNames {
		if text == name {
			return a, nil
		}
	}
	return Hold, fmt.Errorf("%q is not hold, flag or off", gitops.Escape(text))
}

// MarshalText writes the action as [ParseAction] reads it.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText is [ParseAction].
func (a *Action) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAction(string(text))
	return err
}

// stricter is the stricter of two actions.
func stricter(a, b Action) Action { return min(a, b) }

// atMost makes an action no stricter than a limit.
func atMost(a, limit Action) Action { return max(a, limit) }
