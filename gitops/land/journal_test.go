package land

import (
	"os"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
)

// FuzzJournal reads arbitrary bytes as a journal, as a disk may contain them after a power loss.
func FuzzJournal(f *testing.F) {
	f.Add([]byte(`{"version":1,"branch":"refs/heads/x","scratch":"landing-1","refs":[{"ref":"refs/heads/x"}]}`))
	f.Add([]byte(`{"version":1,"scratch":"landing-1/../.."}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(gitops.JournalPath(dir), content, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := readJournal(dir)
		if err != nil {
			return
		}
		if strings.ContainsAny(j.Scratch, "/\x00") || !strings.HasPrefix(j.Scratch, ScratchPrefix) {
			t.Errorf("prepared in %q", j.Scratch)
		}
		if err := j.write(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := readJournal(dir); err != nil {
			t.Errorf("%q is not read again: %v", content, err)
		}
	})
}
