package gitops_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// TestMailmapIsNotRead runs the functions that start git log in a work tree with a .mailmap for which git needs minutes.
func TestMailmapIsNotRead(t *testing.T) {
	t.Parallel()
	var mailmap strings.Builder
	for i := 400_000; i > 0; i-- {
		fmt.Fprintf(&mailmap, "A <%07x@b>\n", i)
	}
	w := gitopstest.New(t)
	tip := w.CommitAll(gitopstest.Files{".mailmap": "Mapped <mapped@x> <ada@example.com>\n", "a": "1\n"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	author := w.Run("log", "-1", "--format=%ae")
	gitopstest.Check(t, os.WriteFile(w.Top+"/.mailmap", []byte("Mapped <mapped@x> <"+author+">\n"), 0o600))
	var out bytes.Buffer
	if err := w.Log(ctx, w.Top, &out, false, "-1"); err != nil || !strings.Contains(out.String(), "mapped@x") {
		t.Errorf("git airlock log shows %q, %v; want the mapped author", out.String(), err)
	}
	gitopstest.Check(t, os.WriteFile(w.Top+"/.mailmap", []byte(mailmap.String()), 0o600))
	_, noted := w.Noted(ctx, "", []string{string(tip)})
	_, summaries := w.Summaries(ctx, 1, "HEAD")
	_, past := w.PastBesides(ctx, "refs/heads/main", "x")
	_, at := w.CommitTime(ctx, tip)
	_, reverts := w.Reverts(ctx, []string{"HEAD"})
	for name, err := range map[string]error{"Noted": noted, "Summaries": summaries, "PastBesides": past, "CommitTime": at, "Reverts": reverts,
		"ShowChange": w.ShowChange(ctx, io.Discard, false, false, tip)} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
