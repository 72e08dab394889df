package checkpoints

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/git-airlock/git-airlock/gitops"
)

// unfinished is written while a restore changes the workspace. Restore and all readers hold the same lock, so that a reader finds it only
// if the process of the restore was killed.
type unfinished struct {
	To     int `json:"to"`     // the checkpoint that was restored
	Before int `json:"before"` // the checkpoint of the state before
}

func (k Keeper) unfinishedFile() string {
	return filepath.Join(k.Prisons.Store.Dir(k.Record.ID), "restore.json")
}

// begin notes durably that a restore begins to change the workspace.
func (k Keeper) begin(u unfinished) error {
	content, err := json.Marshal(u)
	if err != nil {
		return err
	}
	return gitops.WriteFile(k.unfinishedFile(), content, 0o600)
}

// finished notes that the workspace is not changed any more.
func (k Keeper) finished() error { return os.Remove(k.unfinishedFile()) }

// sayUnfinished reports a restore whose process was killed, until the next restore has ended.
func (k Keeper) sayUnfinished() error {
	content, err := os.ReadFile(k.unfinishedFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var u unfinished
	if err == nil {
		err = json.Unmarshal(content, &u)
	}
	if err != nil {
		return fmt.Errorf("read the note of a restore: %w", err)
	}
	k.Prisons.Report.Say("the restore of checkpoint %d was interrupted: the workspace may have files of both states", u.To)
	k.Prisons.Report.Hint(fmt.Sprintf("git airlock checkpoint restore %d", u.To), fmt.Sprintf("git airlock checkpoint restore %d  # the state before", u.Before))
	return nil
}
