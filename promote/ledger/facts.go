package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
)

// Fact has the texts of the notes on an outer commit, as this airlock wrote them. Evidence is made from them and not from the notes, which a
// fetch can replace by those of somebody else.
type Fact struct {
	Version int        `json:"v"`
	Commit  gitops.OID `json:"commit"`
	// Note has the lines of the provenance note of which evidence is made. It is empty if the note was removed, since the commit did not wait
	// any more.
	Note string `json:"note,omitempty"`
	// Reached is the note about the network.
	Reached string `json:"reached,omitempty"`
	// Same reports that Reached is the text of the line before: commits of one cycle share it.
	Same bool `json:"same,omitempty"`
}

const (
	// factsSize is the size in bytes beyond which the file of facts is written again, with factsKept facts about commits that are neither
	// pending nor landed, and all others. An undone commit can be landed again.
	factsSize = 4 << 20
	factsKept = 2000
	// factLines begin the lines of a provenance note of which evidence is made.
	factLines = "Airlock-Inner-Commit: |Airlock-Tree: |Airlock-Policy: |Airlock-Landed-At: |Airlock-Without: |Airlock-Reviewed-By: "
)

func factsFile(dir string) string { return filepath.Join(dir, "facts") }

// KeepFacts adds the texts of new notes to the file of facts, before the notes become visible: of provenance notes, and of those about the
// network. Evidence about a commit is made after it has landed, and [ForgetFacts] removes its facts then.
func (l *Ledger) KeepFacts(notes, reached []quarantine.Note) error {
	if len(notes) == 0 {
		return nil
	}
	dir, egress := filepath.Dir(l.file), map[gitops.OID]string{}
	for _, n := range reached {
		egress[n.Commit] = n.Text
	}
	if info, err := os.Stat(factsFile(dir)); err == nil && info.Size() > factsSize {
		if err := l.shortenFacts(dir); err != nil {
			return err
		}
	}
	facts := make([]Fact, len(notes))
	for i, n := range notes {
		facts[i] = Fact{Commit: n.Commit, Note: factsOf(n.Text), Reached: egress[n.Commit]}
	}
	text, err := factsText(facts)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(factsFile(dir), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("\n" + text) // ends a line that a crash has torn
	return errors.Join(err, f.Sync(), f.Close())
}

// factsOf returns the lines of a provenance note of which evidence is made.
func factsOf(note string) string {
	var b strings.Builder
	for line := range strings.Lines(note) {
		key, _, found := strings.Cut(line, ": ")
		if found && slices.Contains(strings.Split(factLines, "|"), key+": ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func factsText(facts []Fact) (string, error) {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	before := ""
	for _, f := range facts {
		f.Version, f.Same = version, f.Reached != "" && f.Reached == before
		before = f.Reached
		if f.Same {
			f.Reached = ""
		}
		if err := out.Encode(f); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// ReadFacts reads the facts in the host state dir, by outer commit. A line that a crash has torn is left out.
func ReadFacts(dir string) (map[gitops.OID]Fact, error) {
	_, facts, err := readFacts(dir)
	return facts, err
}

// readFacts also returns the commits in the order in which their facts were written last.
func readFacts(dir string) (order []gitops.OID, facts map[gitops.OID]Fact, err error) {
	content, err := os.ReadFile(factsFile(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	facts = map[gitops.OID]Fact{}
	var all []gitops.OID
	before := ""
	for line := range bytes.Lines(content) {
		var f Fact
		if json.Unmarshal(line, &f) != nil {
			continue
		}
		if f.Version != version {
			return nil, nil, fmt.Errorf("read %q: its version is %d, and this program reads version %d", factsFile(dir), f.Version, version)
		}
		if f.Same {
			f.Reached, f.Same = before, false
		}
		if before = f.Reached; f.Reached == "" { // a removal, or the note of a commit that was landed by hand
			f.Reached = facts[f.Commit].Reached
		}
		facts[f.Commit], all = f, append(all, f.Commit)
	}
	seen := map[gitops.OID]bool{}
	for _, id := range slices.Backward(all) {
		if !seen[id] {
			seen[id], order = true, append(order, id)
		}
	}
	slices.Reverse(order)
	return order, facts, nil
}

// ForgetFacts removes the facts about commits about which evidence was made.
func ForgetFacts(dir string, made map[gitops.OID]bool) error {
	order, facts, err := readFacts(dir)
	if err != nil {
		return err
	}
	return writeFacts(dir, slices.DeleteFunc(order, func(id gitops.OID) bool { return made[id] }), facts)
}

// shortenFacts removes old facts about commits that are neither pending nor landed.
func (l *Ledger) shortenFacts(dir string) error {
	order, facts, err := readFacts(dir)
	if err != nil {
		return err
	}
	keep := maps.Clone(l.outer)
	keep.Add(Outers(l.Tail)...)
	others := 0
	for _, id := range slices.Backward(order) {
		if !keep[id] && others < factsKept {
			keep[id], others = true, others+1
		}
	}
	return writeFacts(dir, slices.DeleteFunc(order, func(id gitops.OID) bool { return !keep[id] }), facts)
}

func writeFacts(dir string, order []gitops.OID, facts map[gitops.OID]Fact) error {
	list := make([]Fact, len(order))
	for i, id := range order {
		list[i] = facts[id]
	}
	text, err := factsText(list)
	if err != nil {
		return err
	}
	return durable.WriteFile(factsFile(dir), []byte(text), 0o600)
}

// Entries returns the entries of the ledger in the host state dir, landed or pending, by outer commit. landed lists the outer commits up to
// promoted, the last landed one, oldest first.
func Entries(dir string, promoted gitops.OID) (of map[gitops.OID]Pair, landed []gitops.OID, err error) {
	all, err := entries(dir)
	of = map[gitops.OID]Pair{}
	for i, p := range all {
		of[p.Outer] = p
		if p.Outer == promoted {
			landed = Outers(all[:i+1])
		}
	}
	return of, landed, err
}

// entries reads the ledger in the host state dir.
func entries(dir string) ([]Pair, error) {
	content, err := os.ReadFile(ledgerFile(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all, _, err := parse(string(content))
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", ledgerFile(dir), err)
	}
	return all, nil
}
