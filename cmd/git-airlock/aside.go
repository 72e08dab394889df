package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// bringHome is the command by which what waits on a ref comes to where it lands, wherever the agent's HEAD is.
func bringHome(w promote.Waiting) string {
	from := gitops.ShellQuote(w.Name)
	switch w.Name {
	case "":
		return "git airlock visit -- git for-each-ref"
	case "refs/stash":
		return "git airlock visit -- git stash pop"
	case "HEAD": // which is another one on main
		from = "@{-1}"
	}
	return "git airlock visit -- sh -c " + gitops.Pasteable("git checkout main && git merge --no-edit "+from)
}

// besides adds to what became of promoting a [refusal], if the commit that a rescue made on a ref does not land: only main
// does. Where ref is empty it made none.
func (a *app) besides(ctx context.Context, r airlock.Record, ref string, promoted error) error {
	var held *refusal
	if ref == "" || ref == gitops.InnerMain || promoted != nil && !errors.As(promoted, &held) {
		return promoted
	}
	engine := a.engine(r)
	defer engine.Close()
	state, err := engine.State(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(state.Waiting, func(w promote.Waiting) bool { return w.Name == ref })
	if i < 0 { // of many refs not each is told
		i = slices.IndexFunc(state.Waiting, func(w promote.Waiting) bool { return w.Name == "" })
	}
	if i < 0 {
		return promoted // it has landed all the same, with --from
	}
	if held != nil {
		ui.Say(a.message, "%s", held.text)
		ui.Hint(a.message, held.hints...)
	}
	w := state.Waiting[i]
	return &refusal{fmt.Sprintf("what was not committed is on %s now, which does not land by itself: %s", w.Ref, ui.Count(w.Commits, "commit")),
		[]string{bringHome(w)}}
}
