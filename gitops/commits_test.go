package gitops

import (
	"bytes"
	"testing"
	"time"
)

// Who reads commits may take their time over each (a merge, say): git has answered everything long before.
func TestCommitsWaitForTheirReader(t *testing.T) {
	t.Parallel()
	i := newInner(t, files{"a": "1"})
	var names []OID
	var objects [][]byte
	for n := range 8 {
		content := Commit{Tree: OID(i.git("rev-parse", "HEAD^{tree}")), Author: "G <g@x> 1 +0000", Committer: "G <g@x> 1 +0000",
			Message: bytes.Repeat([]byte{'a' + byte(n)}, 30_000)}.Bytes()
		objects, names = append(objects, content), append(names, HashObject("sha1", "commit", content))
	}
	check(t, i.q.StoreCommits(t.Context(), objects))
	read := 0
	check(t, i.q.Commits(t.Context(), names, func(OID, Commit) error {
		if read++; read == 6 {
			time.Sleep(2500 * time.Millisecond) // longer than a pipe is waited for once its git has ended
		}
		return nil
	}))
	if read != len(names) {
		t.Errorf("%d commits read, want %d", read, len(names))
	}
}
