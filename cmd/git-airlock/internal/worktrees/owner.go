package worktrees

import (
	"fmt"
	"os"
	"os/user"
	"strconv"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// CheckOwner returns an error if the repository belongs to another user. Root could work on it, but would leave files there that
// its owner cannot use. sudo is the uid of the user who has called sudo, and otherwise 0.
func CheckOwner(repo *gitops.Repository, store airlock.Store, sudo int) error {
	owner, ok := store.Foreign()
	if ok {
		return environment.Advise(fmt.Errorf("the airlocks of this repository belong to %s", userName(owner)), asUser(owner)...)
	}
	if sudo == 0 || os.Geteuid() != 0 || store.Ours() {
		return nil
	}
	if info, err := os.Stat(repo.CommonDir); err != nil || !gitops.OwnedBy(info, sudo) {
		return nil
	}
	return environment.Advise(fmt.Errorf("this repository belongs to %s, who could not use an airlock that root makes", userName(sudo)),
		"git airlock start  # without sudo")
}

func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return "uid " + strconv.Itoa(uid)
}

// asUser returns the commands that reach another user's airlock.
func asUser(uid int) []string {
	if uid == 0 {
		return []string{"sudo git airlock list", "sudo git airlock clear"}
	}
	return []string{"sudo -u '#" + strconv.Itoa(uid) + "' git airlock list"}
}
