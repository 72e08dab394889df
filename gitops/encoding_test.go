package gitops_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// TestLogsAreInUTF8 runs the functions that start git log or git rev-list --format for a user who has another encoding for logs. What the
// program reads is in UTF-8 nevertheless, and so is what it shows.
func TestLogsAreInUTF8(t *testing.T) {
	t.Parallel()
	const subject = "Grüße"
	for _, setting := range []string{"i18n.logOutputEncoding=UTF-16", "i18n.logOutputEncoding=ISO-8859-1", "i18n.commitEncoding=ISO-8859-1"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			w := gitopstest.New(t)
			first := w.CommitAll(gitopstest.Files{"a": "1\n"})
			w.Run("commit", "-q", "--allow-empty", "-m", subject, "-m", "This reverts commit "+string(first)+".")
			tip, tree, at := gitops.OID(w.Run("rev-parse", "HEAD")), w.Run("rev-parse", "HEAD^{tree}"), w.Run("log", "-1", "--format=%ct")
			key, value, _ := strings.Cut(setting, "=")
			w.Run("config", key, value)

			ctx := t.Context()
			if got, err := w.Tree(ctx, tip); err != nil || string(got) != tree {
				t.Errorf("the tree is %q, %v", got, err)
			}
			if got, err := w.CommitTime(ctx, tip); err != nil || fmt.Sprint(got.Unix()) != at {
				t.Errorf("the time is %v, %v", got, err)
			}
			if got, err := w.PastBesides(ctx, "refs/heads/main", "none has this"); err != nil || !slices.Equal(got, []gitops.OID{tip, first}) {
				t.Errorf("the reflog has %q, %v", got, err)
			}
			if got, err := w.Reverts(ctx, []string{"HEAD"}); err != nil || !slices.Equal(got[tip], []gitops.OID{first}) {
				t.Errorf("the reverts are %q, %v", got, err)
			}
			if got, err := w.Summaries(ctx, 1, "HEAD"); err != nil || len(got) != 1 || got[0].Subject != subject {
				t.Errorf("the summaries are %q, %v", got, err)
			}
			if got, err := w.Noted(ctx, "", []string{"HEAD"}, "-1"); err != nil || len(got) != 1 || got[0].ID != tip || got[0].Subject != subject {
				t.Errorf("the commits are %q, %v", got, err)
			}
			var out bytes.Buffer
			if err := w.Log(ctx, w.Top, &out, false, "-1", "--format=%s"); err != nil || strings.TrimSpace(out.String()) != subject {
				t.Errorf("git airlock log shows %q, %v", out.String(), err)
			}
		})
	}
}
