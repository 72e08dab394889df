package session

import (
	"fmt"
	"os"
	"os/user"
	"strconv"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// checkOwner refuses to work on what is another user's: root can, and would leave files there that lock its owner out.
func checkOwner(repo *gitops.Repository, store airlock.Store, sudo int) error {
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
	return environment.Advise(fmt.Errorf("this repository belongs to %s: an airlock of root's would lock them out", userName(sudo)),
		"git airlock start  # without sudo")
}

func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return "uid " + strconv.Itoa(uid)
}

// asUser is how somebody else's airlock is reached.
func asUser(uid int) []string {
	if uid == 0 {
		return []string{"sudo git airlock list", "sudo git airlock clear"}
	}
	return []string{"sudo -u '#" + strconv.Itoa(uid) + "' git airlock list"}
}
