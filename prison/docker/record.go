package docker

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/hostfile"
)

// recordName and commandName are the files in the prison's host folder.
const (
	recordName  = "container.json"
	commandName = "command.json"
)

// record is what the host remembers of a prison between calls. It moves with the repository, and
// so do its claims on the engine.
type record struct {
	Host      string `json:"host"`      // the engine's address; the caller's settings may have changed since
	Key       string `json:"key"`       // a label on all that the prison has on the engine
	Container string `json:"container"` // its id, empty while there is none
	Ref       string `json:"ref"`       // the image as it was asked for
	Image     string `json:"image"`     // and its id: a tag that moves does not move the prison
	Shell     string `json:"shell"`     // the best one in the image
	Furnished bool   `json:"furnished"` // the home's volume was filled
	Disk      string `json:"disk"`      // the engine's folder, where the home's volume is
}

// readRecord returns nil if there is no prison.
func readRecord(dir string) (*record, error) {
	var r record
	err := hostfile.Read(filepath.Join(dir, recordName), &r)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &r, nil
}

func (r *record) write(dir string) error { return hostfile.Write(filepath.Join(dir, recordName), r) }

// keyLength is a key's, in bytes.
const keyLength = 8

// newRecord returns the record of a prison that is to be on the engine at host.
func newRecord(host string) (*record, error) {
	var key [keyLength]byte
	if _, err := rand.Read(key[:]); err != nil {
		return nil, err
	}
	return &record{Host: host, Key: hex.EncodeToString(key[:])}, nil
}

// forget removes what the host remembers.
func forget(dir string) error {
	for _, file := range []string{commandName, logName, logName + oldSuffix, socketName, filterName, recordName} {
		if err := os.Remove(filepath.Join(dir, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// labels mark something on the engine as a prison's.
func (r *record) labels(s prison.Spec, role string) map[string]string {
	return map[string]string{labelKey: r.Key, labelID: s.ID, labelRole: role}
}

// isOurs reports whether labels are those of a prison: their names are plain words, which others may use as well.
func isOurs(labels map[string]string) bool {
	key, err := hex.DecodeString(labels[labelKey])
	return err == nil && len(key) == keyLength && labels[labelID] != ""
}

// The names of a prison's volumes appear inside, in mountinfo.
func (r *record) homeVolume() string { return "work-" + r.Key + "-home" }
func (r *record) etcVolume() string  { return "work-" + r.Key + "-etc" }

// network is an open prison's bridge.
func (r *record) network() string { return "work-" + r.Key }
