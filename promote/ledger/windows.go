package ledger

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
)

// Egress is the record of a prison's network. Its entries are numbered from 1. If the record cannot be read, commits land all the same, and
// their notes contain the error.
type Egress interface {
	// Newest returns the number of the newest entry, 0 if there is none.
	Newest() uint64
	// Note returns a note's text about the entries after one number up to another, and about connections without an entry.
	Note(after, upTo uint64, open []Connection) string
	// Open returns the connections that have no entry yet, with the most bytes first. With asked, it asks the network first, so that it knows
	// every connection that began before the call.
	Open(ctx context.Context, asked bool) ([]Connection, error)
	// Fetched lists the hosts that sent something and that no rule names, from the entries after one number up to another, and from connections
	// without an entry. It also lists entries that cannot be read.
	Fetched(after, upTo uint64, open []Connection) []string
	// Placeholders returns the texts that programs inside have in place of keys.
	Placeholders() []string
}

// Connection is a connection that has no entry yet: it is open, or its entry is not written.
type Connection struct {
	Host     string `json:"host"` // with its port, escaped for a note
	Sent     int64  `json:"sent,omitempty"`
	Received int64  `json:"received,omitempty"`
	Named    bool   `json:"named,omitempty"` // by a rule
	Ended    bool   `json:"ended,omitempty"`
}

// keptOpen bounds the connections that are kept for each part of the record. Those that no rule names are kept first.
const keptOpen = 100

// Window is the part of the record of a prison's network that belongs to an inner commit: the entries after one number
// up to another. The host decides it when a cycle takes the commit over, so commits of one cycle share a window.
type Window struct {
	Inner gitops.OID `json:"inner"`
	After uint64     `json:"after"`
	UpTo  uint64     `json:"upTo"`
}

// Windows are the windows of the pending commits.
type Windows struct {
	Version int `json:"version"`
	// Landed is the last entry that belongs to a landed commit.
	Landed  uint64   `json:"landed"`
	Pending []Window `json:"pending"`
	// Open has the connections without an entry when a window was made, for each part of the record that is the window of a pending commit.
	Open map[string][]Connection `json:"open,omitempty"`

	record Egress
	open   []Connection
	unread error // why open may lack some
	newest uint64
	end    uint64                    // the last entry that belonged to a commit when the windows were read
	inner  map[gitops.OID]gitops.OID // by outer commit
	known  map[gitops.OID]Window     // by inner commit
	texts  map[[2]uint64]string
}

func windowsFile(dir string) string { return filepath.Join(dir, "windows.json") }

// ReadWindows reads the windows of the commits that are still pending in a ledger. The window of a commit that the agent
// has removed becomes part of the next one. asked is as in [Egress.Open].
func ReadWindows(ctx context.Context, dir string, l *Ledger, pending []Pair, record Egress, asked bool) (*Windows, error) {
	w := &Windows{Version: version, record: record, inner: map[gitops.OID]gitops.OID{}, known: map[gitops.OID]Window{}, texts: map[[2]uint64]string{}}
	w.open, w.unread = record.Open(ctx, asked)
	w.newest = record.Newest() // after the connections: one that ends meanwhile is in both, or in either
	if err := readFile(windowsFile(dir), w, &w.Version); err != nil {
		return w, err
	}
	waits := map[gitops.OID]bool{}
	for _, p := range pending {
		waits[p.Inner], w.inner[p.Outer] = true, p.Inner
	}
	w.Pending = slices.DeleteFunc(w.Pending, func(k Window) bool {
		if l.Has(k.Inner) {
			w.Landed = max(w.Landed, k.UpTo)
		}
		return !waits[k.Inner]
	})
	w.end = w.Landed
	earlier := w.Open
	w.Open = map[string][]Connection{}
	for _, k := range w.Pending {
		w.end, w.known[k.Inner] = max(w.end, k.UpTo), k
		if open := earlier[k.part()]; len(open) > 0 {
			w.Open[k.part()] = open
		}
	}
	return w, nil
}

// part returns the key of a window's part of the record in [Windows.Open].
func (w Window) part() string { return fmt.Sprintf("%d-%d", w.After, w.UpTo) }

// Notes returns the changes of the notes about the network that belong to changes of provenance notes. If removals is false, it leaves out the
// removals, because there are no notes about the network yet.
func (w *Windows) Notes(changes []quarantine.Note, removals bool) (notes []quarantine.Note) {
	for _, n := range changes {
		if n.Text != "" {
			n.Text = w.text(n.Commit)
		}
		if n.Text != "" || removals {
			notes = append(notes, n)
		}
	}
	return notes
}

// Fetched returns, for each inner commit, what [Egress.Fetched] lists for its window, with the connections that were open when the window was
// made: their records come later.
func (w *Windows) Fetched(pairs []Pair) map[gitops.OID][]string {
	fetched, of := map[gitops.OID][]string{}, map[Window][]string{}
	for _, p := range pairs {
		window := w.of(p.Inner)
		part := Window{After: window.After, UpTo: window.UpTo}
		if _, known := of[part]; !known {
			of[part] = w.record.Fetched(part.After, part.UpTo, w.Open[window.part()])
			if w.unread != nil {
				of[part] = append(of[part], "the open connections are not known: "+w.unread.Error())
			}
		}
		fetched[p.Inner] = of[part]
	}
	return fetched
}

// text returns the text about the window of an outer commit. A commit without a window gets one, which has all entries that belong to no
// commit of an earlier cycle.
func (w *Windows) text(outer gitops.OID) string {
	window := w.of(w.inner[outer])
	part := [2]uint64{window.After, window.UpTo}
	if w.texts[part] == "" {
		w.texts[part] = w.record.Note(window.After, window.UpTo, w.Open[window.part()])
	}
	return w.texts[part]
}

func (w *Windows) of(inner gitops.OID) Window {
	window, known := w.known[inner]
	if !known {
		window = Window{Inner: inner, After: w.end, UpTo: max(w.end, w.newest)}
		w.Pending, w.known[inner] = append(w.Pending, window), window
		if len(w.open) > 0 {
			open := slices.Clone(w.open)
			slices.SortStableFunc(open, func(a, b Connection) int { return cmp.Compare(unnamed(b), unnamed(a)) })
			w.Open[window.part()] = open[:min(len(open), keptOpen)]
		}
	}
	return window
}

// unnamed returns 1 for a connection that no rule names, and 0 for others.
func unnamed(c Connection) int {
	if c.Named {
		return 0
	}
	return 1
}

// Save writes the windows, so that a commit that is built again keeps its window.
func (w *Windows) Save(dir string) error { return writeFile(windowsFile(dir), w) }
