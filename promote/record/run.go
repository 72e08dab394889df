package record

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// Run is a record with the content of its files.
type Run struct {
	Ref      string     // full name of the ref, where it was found by one
	Commit   gitops.OID // the commit of the record; empty if it is not stored yet
	Manifest Manifest
	Files    map[string][]byte // by name, including the manifest and [SumsName]
	Faults   []string          // what is wrong with a stored record, one sentence each
}

// New returns the record of a run. files are all files but the manifest and [SumsName]. New sets the sizes in the manifest,
// and refuses files that are too large, unknown, or missing without a reason in m.Absent.
func New(m Manifest, files map[string][]byte) (Run, error) {
	m.Version, m.Absent = Version, maps.Clone(m.Absent)
	about := map[string]File{}
	var total int64
	for name, content := range files {
		if !slices.Contains(Names(), name) || name == ManifestName || name == SumsName {
			return Run{}, fmt.Errorf("record a run: %q is not a file of a record", name)
		}
		if len(content) > MaxFile {
			return Run{}, fmt.Errorf("record a run: %s has %d bytes, and at most %d are allowed", name, len(content), MaxFile)
		}
		f := m.Files[name]
		f.Size = int64(len(content))
		about[name] = f
		delete(m.Absent, name)
		total += f.Size
	}
	if total > MaxTotal {
		return Run{}, fmt.Errorf("record a run: %d bytes, and at most %d are allowed", total, int64(MaxTotal))
	}
	m.Files = about
	if m.Absent == nil {
		m.Absent = map[string]string{}
	}
	for _, name := range Names() {
		if _, there := files[name]; !there && m.Absent[name] == "" && name != ManifestName && name != SumsName {
			return Run{}, fmt.Errorf("record a run: %s is missing without a reason", name)
		}
	}
	manifest, err := m.Encode()
	if err != nil {
		return Run{}, err
	}
	all := maps.Clone(files)
	if all == nil {
		all = map[string][]byte{}
	}
	all[ManifestName] = manifest
	all[SumsName] = sums(all)
	return Run{Manifest: m, Files: all}, nil
}

// Open reads the manifest of a record, which may be from anybody. It does not verify the record, but refuses files that are too large.
func Open(files map[string][]byte) (Run, error) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if size := len(files[name]); size > MaxFile {
			return Run{}, fmt.Errorf("read the record: %s has %d bytes, and at most %d are allowed", name, size, MaxFile)
		}
	}
	content, ok := files[ManifestName]
	if !ok {
		return Run{}, fmt.Errorf("read the record: it has no %s", ManifestName)
	}
	m, err := DecodeManifest(content)
	return Run{Manifest: m, Files: files}, err
}

// sums returns the file [SumsName] for other files.
func sums(files map[string][]byte) []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name != SumsName {
			fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(files[name]), name)
		}
	}
	return b.Bytes()
}

// Verify returns what is wrong with the files of a record, one sentence each. It compares all hashes, and the manifest with
// the files. It does not verify the commit.
func (r Run) Verify() (faults []string) {
	want := sums(r.Files)
	if !bytes.Equal(want, r.Files[SumsName]) {
		faults = differing(want, r.Files[SumsName])
	}
	m, err := DecodeManifest(r.Files[ManifestName])
	if err != nil {
		return append(faults, err.Error())
	}
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		about, listed := m.Files[name]
		switch {
		case name == ManifestName || name == SumsName:
		case !listed:
			faults = append(faults, fmt.Sprintf("%s is not in the manifest", gitops.Text(name)))
		case about.Size != int64(len(r.Files[name])):
			faults = append(faults, fmt.Sprintf("%s has %d bytes, and %d in the manifest", gitops.Text(name), len(r.Files[name]), about.Size))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		if _, there := r.Files[name]; !there {
			faults = append(faults, fmt.Sprintf("%s is in the manifest, but not in the record", gitops.Text(name)))
		}
	}
	return faults
}

// differing returns the files whose lines in [SumsName] are not as they must be.
func differing(want, got []byte) (faults []string) {
	lines := map[string]string{} // by name
	for line := range strings.Lines(string(got[:min(len(got), maxLine)])) {
		sum, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		lines[name] = sum
	}
	for line := range strings.Lines(string(want)) {
		sum, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if lines[name] != sum {
			faults = append(faults, fmt.Sprintf("%s does not have the hash in %s", gitops.Text(name), SumsName))
		}
	}
	if len(faults) == 0 {
		faults = []string{SumsName + " is not as it was written"}
	}
	return faults
}

// ErrAbsent reports that a record does not have a file. The manifest has the reason.
var ErrAbsent = errors.New("not in the record")

// Text returns a file of plain bytes, such as [ChangesName] or [StdoutName]. The error is [ErrAbsent] without the file.
func (r Run) Text(name string) ([]byte, error) {
	content, ok := r.Files[name]
	if !ok {
		return nil, fmt.Errorf("read %s: %w: %s", name, ErrAbsent, gitops.Text(r.Manifest.Absent[name]))
	}
	return content, nil
}

// Events returns the events of the run, in the order in which they happened. The error is [ErrAbsent] without the file.
func (r Run) Events() ([]Event, error) { return lines[Event](r, EventsName) }

// Execs returns the programs that ran. The error is [ErrAbsent] if they were not recorded.
func (r Run) Execs() ([]Exec, error) { return lines[Exec](r, ExecName) }

// Egress returns the connections that the prison made, and those that were refused. The error is [ErrAbsent] if the prison's network made no
// record.
func (r Run) Egress() ([]Egress, error) { return lines[Egress](r, EgressName) }

func lines[T Event | Exec | Egress](r Run, name string) ([]T, error) {
	return decoded(r, name, func(content []byte) ([]T, error) { return DecodeLines[T](name, content) })
}

func decoded[T any](r Run, name string, decode func(content []byte) ([]T, error)) ([]T, error) {
	content, err := r.Text(name)
	if err != nil {
		return nil, err
	}
	return decode(content)
}

// Samples returns the resources that the prison used. The error is [ErrAbsent] if they were not measured.
func (r Run) Samples() ([]Sample, error) { return decoded(r, ResourcesName, decodeSamples) }

// Commits returns the commits of the run, oldest first.
func (r Run) Commits() ([]Commit, error) { return decoded(r, CommitsName, DecodeCommits) }
