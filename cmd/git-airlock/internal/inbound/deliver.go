package inbound

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// CheckReason returns an [environment.Refusal] if the agent must not read the text that a command was given.
func CheckReason(in prisons.Prisons, command, text string) error {
	if text == "" {
		return nil
	}
	found := in.Leaks(text)
	if len(found) == 0 {
		return nil
	}
	return &environment.Refusal{Text: "the agent will read the reason, which must not contain " + strings.Join(found, ", ") + "; nothing was recorded",
		Next: []string{"git airlock " + command + " -h"}}
}

// pendingWork reports whether a sync is not complete, whether reasons wait for the agent, and which sync the user wants later.
type pendingWork struct {
	open, reasons bool
	wanted        *ledger.Wanted // nil for nothing
}

// workIn reads from the host state dir what must be done.
func workIn(dir string) (w pendingWork, err error) {
	record, err := ledger.ReadSynced(dir)
	if err != nil {
		return w, err
	}
	decisions, err := ledger.ReadDecisions(dir)
	return pendingWork{record.Open() != nil, len(record.Unsent(decisions)) > 0, record.Wanted}, err
}

// Syncing reports from the host state dir whether a sync is running, or was interrupted and is not complete, and whether one waits until
// the agent's work is not in the way.
func Syncing(dir string) (now, later bool, err error) {
	record, err := ledger.ReadSynced(dir)
	return record.Open() != nil, record.Wanted != nil, err
}

// SendToAgent completes an interrupted sync and, if reasons is set, delivers the reasons of verdicts, each within a limit of time. The caller
// holds the store's lock. SendToAgent ends with [airlock.ErrWanted] when another command needs that lock: git runs the agent's filters in the
// workspace, which may never end.
func SendToAgent(ctx context.Context, in prisons.Prisons, r airlock.Record, reasons bool, limit time.Duration) error {
	dir := in.Store.Dir(r.ID)
	waits, err := workIn(dir)
	if err != nil || !waits.open && (!waits.reasons || !reasons) || in.Store.WorkspaceGone(r) {
		return err
	}
	ctx, free := in.Store.Yielding(ctx)
	defer free()
	w, end, err := in.Inside(ctx, r)
	if err != nil {
		return ended(ctx, err)
	}
	defer end() //nolint:errcheck // the result does not depend on how the prison ends
	if err := finishWithin(ctx, w, dir, limit); err != nil {
		return fmt.Errorf("finish the interrupted sync: %w", err)
	}
	if !reasons {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return ended(ctx, sendReasons(ctx, in, r, w))
}

// sendReasons writes the reasons of verdicts as notes into the inner repository. It records a note after it has written the note, and the
// inner repository does not take the same note twice. So a kill neither loses nor repeats a note.
func sendReasons(ctx context.Context, in prisons.Prisons, r airlock.Record, w inner.Workspace) error {
	dir := in.Store.Dir(r.ID)
	record, err := ledger.ReadSynced(dir)
	if err != nil {
		return err
	}
	decisions, err := ledger.ReadDecisions(dir)
	if err != nil {
		return err
	}
	unsent := record.Unsent(decisions)
	record.InventColleague(r.Ghost)
	for _, t := range unsent {
		shown := t.Text
		if len(in.Leaks(shown)) > 0 { // the user's name may have changed since it was checked
			shown, _, _ = strings.Cut(shown, ":")
		}
		err := w.Remark(ctx, inner.Remark{Commit: t.Commit, Text: shown, Name: record.Colleague.Name, Mail: record.Colleague.Mail})
		if err != nil {
			return fmt.Errorf("deliver a reason: %w", err)
		}
		record.MarkSent(t, decisions)
		if err := record.Write(dir); err != nil {
			return err
		}
	}
	return nil
}
