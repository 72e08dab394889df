package docker

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/inside"
	"github.com/git-airlock/git-airlock/prison/hostfile"
	"github.com/git-airlock/git-airlock/prison/watch/containers"

	"github.com/docker/docker/api/types/container"
)

// stateName is the file of the state in the prison's host folder.
const stateName = "container.json"

// state is the stored state of a prison. It stays in the prison's host folder when the repository moves, with its references to objects
// on the engine.
type state struct {
	Host      string `json:"host"`      // address of the engine; the caller's settings may have changed since
	Product   string `json:"product"`   // name of the engine's product, see [dialect.Platform.Product]
	Key       string `json:"key"`       // label on all objects of the prison on the engine
	Container string `json:"container"` // id of the container, empty if there is none
	Started   string `json:"started"`   // when our start started the container, see [state.stillStarted]
	Holder    string `json:"holder"`    // id of the container with the network, if that is another container
	Ref       string `json:"ref"`       // name of the image, as requested
	Image     string `json:"image"`     // id of the image: if the tag moves, the prison keeps its image
	Shell     string `json:"shell"`     // the best shell in the image
	Variables bool   `json:"variables"` // whether variables were passed in
	Filled    bool   `json:"filled"`    // whether the home's volume has been filled
	Disk      string `json:"disk"`      // the engine's folder that contains the home's volume
}

// readState returns nil if there is no prison.
func readState(dir string) (*state, error) {
	return hostfile.Find[state](filepath.Join(dir, stateName))
}

func (r *state) write(dir string) error { return hostfile.Write(filepath.Join(dir, stateName), r) }

// stillStarted reports whether a running container is still in the start that ours was. Another start, such as one by "docker restart",
// lacks what is set up inside: the limit of processes under a kernel of its own, passed variables, the network and the record of programs.
func (r *state) stillStarted(c *container.InspectResponse) bool {
	ours, err := time.Parse(time.RFC3339Nano, r.Started)
	now, errNow := time.Parse(time.RFC3339Nano, c.State.StartedAt)
	return err == nil && errNow == nil && ours.Equal(now)
}

// keyLength is the length of a key in bytes.
const keyLength = 8

// newState returns the state of a new prison on the engine at host.
func newState(host string) *state {
	var key [keyLength]byte
	_, _ = rand.Read(key[:]) // it never fails
	return &state{Host: host, Key: hex.EncodeToString(key[:])}
}

// forget removes the state and the files beside it.
func forget(dir string) error {
	for _, file := range slices.Concat(inside.KeeperFiles(), networkFiles, containers.Files, []string{filterName, stateName}) {
		if err := os.Remove(filepath.Join(dir, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// labels returns the labels that mark an object on the engine as a prison's.
func (r *state) labels(s prison.Spec, role string) map[string]string {
	return map[string]string{labelKey: r.Key, labelID: s.ID, labelRole: role}
}

// isOurs reports whether labels are those of a prison. The names of the labels alone prove nothing, since other
// programs may use the same plain words.
func isOurs(labels map[string]string) bool {
	key, err := hex.DecodeString(labels[labelKey])
	return err == nil && len(key) == keyLength && labels[labelID] != ""
}

// The names of volumes can be read inside, in mountinfo, so they reveal nothing.
func (r *state) homeVolume() string { return "work-" + r.Key + "-home" }
func (r *state) etcVolume() string  { return "work-" + r.Key + "-etc" }
