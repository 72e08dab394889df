package build

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
)

const (
	// mergesLimit bounds the file of merges, in bytes. A larger file is removed, and a new one begun.
	mergesLimit = 1 << 20
	// mergeLimit bounds the bytes of one merge there: the agent can make conflicts of any number of paths.
	mergeLimit = 16 << 10
)

// MergesFile is the file of the host state with the results of merges of the agent's trees. Without it, each process would make these merges
// again for all commits that wait behind one that is left out. The file only saves time: the results are the same without it, and it can be
// removed at any time. A line has the names of the three trees, a tab, and the result. Incomplete lines are ignored.
const MergesFile = "merges-1"

type merge struct {
	tree      gitops.OID
	conflicts []string
}

// keptMerge is a merge in the file.
type keptMerge struct {
	Tree      gitops.OID
	Conflicts [][]byte // paths as bytes, since the names of the agent's files may not be UTF-8
}

// keptMerges maps the names of three trees to the result of their merge, which is still encoded, because most results are never read.
type keptMerges map[string]string

func keyOf(m quarantine.Merge) string {
	return strings.Join(gitops.Names([]gitops.OID{m.Base, m.Ours, m.Theirs}), " ")
}

// readMerges returns the merges that earlier processes have made, as far as they can be read.
func readMerges(file string) keptMerges {
	kept := keptMerges{}
	if info, err := os.Stat(file); err != nil || info.Size() > mergesLimit {
		_ = os.Remove(file)
		return kept
	}
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if key, result, whole := strings.Cut(line, "\t"); whole {
			kept[key] = result
		}
	}
	return kept
}

// of returns the result of a merge, if it is known.
func (kept keptMerges) of(m quarantine.Merge) (result merge, known bool) {
	var k keptMerge
	line, known := kept[keyOf(m)]
	if !known || json.Unmarshal([]byte(line), &k) != nil {
		return merge{}, false
	}
	for _, path := range k.Conflicts {
		result.conflicts = append(result.conflicts, string(path))
	}
	result.tree = k.Tree
	return result, result.tree != "" || result.conflicts != nil
}

// appendMerge adds a merge to the file. If it cannot be written, the next process makes that merge again.
func appendMerge(file string, m quarantine.Merge, result merge) {
	k := keptMerge{Tree: result.tree}
	for _, path := range result.conflicts {
		k.Conflicts = append(k.Conflicts, []byte(path))
	}
	line, err := json.Marshal(k)
	if err != nil || len(line) > mergeLimit {
		return
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = f.WriteString(keyOf(m) + "\t" + string(line) + "\n")
	_ = f.Close()
}
