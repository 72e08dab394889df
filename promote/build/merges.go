package build

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
)

const (
	// mergesLimit bounds the bytes of the file of merges. A larger one is removed, and begins again.
	mergesLimit = 1 << 20
	// mergeLimit bounds the bytes of one merge there: the agent can make conflicts of any number of paths.
	mergeLimit = 16 << 10
)

// MergesFile is the file of the host state with the results of merges of the agent's trees. Each process would make them again for all
// commits that wait behind one that is left out. The file only saves time: it has no other results than the merges, can be removed at
// any time, and a line that was not written completely is ignored.
const MergesFile = "merges-1"

// mergeLine is a line of the file of merges.
type mergeLine struct {
	Base, Ours, Theirs, Tree gitops.OID
	Conflicts                [][]byte // the names of the agent's files are bytes
}

type merge struct {
	tree      gitops.OID
	conflicts []string
}

// readMerges returns the merges that earlier processes have made, or those that can be read.
func readMerges(file string) map[quarantine.Merge]merge {
	merges := map[quarantine.Merge]merge{}
	if info, err := os.Stat(file); err != nil || info.Size() > mergesLimit {
		_ = os.Remove(file)
		return merges
	}
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		var l mergeLine
		if json.Unmarshal([]byte(line), &l) != nil {
			continue
		}
		m := merge{tree: l.Tree}
		for _, path := range l.Conflicts {
			m.conflicts = append(m.conflicts, string(path))
		}
		if m.tree == "" && m.conflicts == nil {
			continue
		}
		merges[quarantine.Merge{Base: l.Base, Ours: l.Ours, Theirs: l.Theirs, Own: true}] = m
	}
	return merges
}

// appendMerge adds a merge to the file. If it cannot be written, the next process makes that merge again.
func appendMerge(file string, m quarantine.Merge, result merge) {
	l := mergeLine{Base: m.Base, Ours: m.Ours, Theirs: m.Theirs, Tree: result.tree}
	for _, path := range result.conflicts {
		l.Conflicts = append(l.Conflicts, []byte(path))
	}
	line, err := json.Marshal(l)
	if err != nil || len(line) > mergeLimit {
		return
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = f.Write(append(line, '\n'))
	_ = f.Close()
}
