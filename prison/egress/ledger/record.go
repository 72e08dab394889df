// Package ledger records the connections and requests of a prison, and those that were refused. Begin with [Writer] and [Read].
//
// The ledger is a file of JSON lines, one [control.Record] each, in a folder that only its owner reads. Each line carries the SHA-256 of
// the line before it, so that a line which is changed, removed or inserted later is found ([Verify]). A process that can write the folder
// can also replace the whole ledger: the chain shows accidents and careless changes, and more if its newest hash is kept elsewhere.
//
// Files are rotated: the newest is [control.LedgerFile], and older ones have a number behind that name. A ledger has at most 50 MiB.
// Programs inside choose its names and paths: escape them for a terminal.
package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/words"
)

const (
	// maxText bounds each text of a record, in bytes. JSON needs at most six bytes for one.
	maxText = 1 << 10
	// maxLine is more than the length of the longest line that a Writer writes, in bytes.
	maxLine = 96 << 10
)

// kinds are the kinds of records that this version knows. A ledger of a later version may have others.
var kinds = []string{control.KindFlow, control.KindRequest, control.KindRefusal, control.KindPolicy, control.KindAlarm}

// encode returns the line of a record with its end. Texts are shortened and made UTF-8, and a path loses its query.
func encode(r control.Record) ([]byte, error) {
	for _, text := range []*string{&r.Session, &r.Kind, &r.Via, &r.Proto, &r.Name, &r.Address, &r.Verdict, &r.Rule, &r.Reason, &r.Seen,
		&r.Method, &r.Path, &r.Credential} {
		*text = words.ClipValid(*text, maxText)
	}
	r.Path, _, _ = strings.Cut(r.Path, "?")
	r.V, r.Time = control.Version, r.Time.UTC().Truncate(time.Millisecond)
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(r)
	return line.Bytes(), err
}

// decode reads a line without its end.
func decode(line []byte) (control.Record, error) {
	var r control.Record
	if len(line) > maxLine {
		return r, errors.New("a line is too long")
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return control.Record{}, err
	}
	if r.V != control.Version || !slices.Contains(kinds, r.Kind) {
		return control.Record{}, fmt.Errorf("a record of version %d and kind %q", r.V, words.ClipValid(r.Kind, maxText))
	}
	return r, nil
}

// hash returns the SHA-256 of a line without its end, which the next line contains.
func hash(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}
