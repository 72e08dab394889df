package attest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/promote/evidence"
)

// stateVersion is the version of the format of the state file.
const stateVersion = 1

func stateFile(dir string) string { return filepath.Join(dir, "evidence.json") }

// state has the place of the newest statement of each key. It is a file of the host state, and can be made again from the notes.
type state struct {
	Version int              `json:"version"`
	Chains  map[string]link  `json:"chains"` // by the fingerprints of keys
	Last    link             `json:"last"`   // the newest of all
	Program evidence.Program `json:"program"`
	// Keys maps values of user.signingKey to the fingerprints of the keys.
	Keys    map[string]string `json:"keys"`
	Refused string            `json:"refused,omitempty"` // why the user's key cannot sign
}

// link is the place of a statement in the chain of its session.
type link struct {
	N      int        `json:"n"`
	Head   string     `json:"head"` // its digest
	Commit gitops.OID `json:"commit"`
	Tree   gitops.OID `json:"tree"`
	Closed bool       `json:"closed,omitempty"`
}

func readState(dir string) (*state, error) {
	s := &state{Version: stateVersion, Chains: map[string]link{}, Keys: map[string]string{}}
	content, err := os.ReadFile(stateFile(dir))
	if err != nil {
		return s, gitops.Unless(err, fs.ErrNotExist)
	}
	if err = json.Unmarshal(content, s); err == nil && s.Version != stateVersion {
		err = fmt.Errorf("its version is %d, and this program reads version %d", s.Version, stateVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", stateFile(dir), err)
	}
	return s, nil
}

func (s *state) save(dir string) error {
	content, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return err
	}
	return durable.WriteFile(stateFile(dir), append(content, '\n'), 0o600)
}

// next records a new statement.
func (s *state) next(key string, l link) {
	s.Chains[key] = l
	if s.Last = l; l.Closed {
		s.Last.Closed = false
	}
}
