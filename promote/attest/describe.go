package attest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/checks"
	"github.com/git-airlock/git-airlock/promote/evidence"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// describe collects the facts about a landed commit: those that the airlock kept when it wrote the notes, the results of checks of its tree, and
// the runs in which it landed.
func (a Attester) describe(commit gitops.OID, fact ledger.Fact, checked []checks.Result, patch string, runs Runs) evidence.Landed {
	landed := evidence.Landed{PatchID: patch, Reached: reached(fact.Reached)}
	for key, value := range fields(fact.Note) {
		switch key {
		case "Inner-Commit":
			landed.Inner = gitops.OID(value)
		case "Tree":
			landed.Tree = value
		case "Policy":
			landed.Policy = value
		case "Landed-At":
			when, _ := time.Parse(time.RFC3339, value)
			landed.Runs = runs(commit, when)
		case "Without":
			landed.Without = append(landed.Without, gitops.OID(value))
		case "Reviewed-By":
			if at := strings.LastIndexByte(value, ' '); at > 0 {
				when, _ := time.Parse(time.RFC3339, value[at+1:])
				landed.Reviewers = append(landed.Reviewers, evidence.Reviewer{By: value[:at], At: when})
			}
		}
	}
	for _, r := range checked {
		landed.Checks = append(landed.Checks, evidence.Check{Command: r.Command, Tree: r.Tree, System: gitops.Text(r.System).String(), Exit: r.Exit, At: r.At})
	}
	return landed
}

// fields iterates over the trailers of a note, without the "Airlock-" of their names.
func fields(note string) func(yield func(key, value string) bool) {
	return func(yield func(key, value string) bool) {
		for line := range strings.Lines(note) {
			key, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			name, ours := strings.CutPrefix(key, "Airlock-")
			if found && ours && !yield(name, value) {
				return
			}
		}
	}
}

// reached reads a note about the network. It returns nil for an empty note.
func reached(note string) *evidence.Reached {
	if note == "" {
		return nil
	}
	r := &evidence.Reached{Note: fmt.Sprintf("%x", sha256.Sum256([]byte(note)))}
	for key, value := range fields(note) {
		if key != "Reached" {
			continue
		}
		words := strings.Fields(value)
		if len(words) == 0 {
			continue // this program writes no such line, but everybody can write notes
		}
		host := evidence.Host{Name: words[0]}
		for _, w := range words[1:] {
			count, value, _ := strings.Cut(w, "=")
			n, _ := strconv.ParseInt(value, 10, 64)
			switch count {
			case "sent":
				host.Sent = n
			case "received":
				host.Received = n
			}
		}
		r.Hosts = append(r.Hosts, host)
	}
	return r
}

// programOf describes this program, with the digest of the file that this process executes. Without proc(5), it is the file that is at the
// program's path now. If the file cannot be read, the digest is left out.
func programOf(version string) evidence.Program {
	p := evidence.Program{Version: version}
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		path, _ := os.Executable()
		if file, err = os.Open(path); err != nil {
			return p
		}
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err == nil {
		p.SHA256 = hex.EncodeToString(h.Sum(nil))
	}
	return p
}
