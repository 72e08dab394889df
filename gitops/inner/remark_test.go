package inner

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
)

// TestRemark adds texts to a commit, some of them again, as after an interruption.
func TestRemark(t *testing.T) {
	t.Parallel()
	p := newPulled(t)
	w := p.workspace("")
	add := func(commit gitops.OID, text string) {
		t.Helper()
		if err := w.Remark(t.Context(), Remark{commit, text, "Colleague", "c@inside.example"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"rejected: one", "rejected: one", "changes requested: two \n\n\n  lines\t\n", "changes requested: two \n\n\n  lines\t\n", "rejected: $(touch x) `touch x` *",
		"lines", "rejected", "lines"} {
		add(p.old, text)
	}
	add(gitops.OID(strings.Repeat("1", 40)), "gone")
	want := "rejected: one\n\nchanges requested: two\n\n  lines\n\nrejected: $(touch x) `touch x` *\n\nlines\n\nrejected"
	if got := p.sh("git notes --ref=review show main"); got != want {
		t.Errorf("%q", got)
	}
	p.sh(fmt.Sprintf(`git log -1 main | grep -q "    rejected: one"; test "$(git config --get-all notes.displayRef)" = refs/notes/review; test ! -e x
		test "$(git log --format='%%an <%%ae> %%cn' refs/notes/review | sort -u)" = "Colleague <c@inside.example> Colleague"; test "$(git rev-parse main)" = %s`, p.old))
	if err := os.WriteFile(p.dir+"/.git/refs/notes/review.lock", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.Remark(t.Context(), Remark{p.old, "later", "C", "c@d"}); err == nil {
		t.Error("no error while the ref is locked")
	}
}
