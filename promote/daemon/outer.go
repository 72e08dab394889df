package daemon

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/checks"
	"github.com/git-airlock/git-airlock/promote/disk"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/review"
)

// outerWatch detects the user's changes in the repository. An inotify event is only a hint. The signature decides.
type outerWatch struct {
	watcher *fsnotify.Watcher // nil if the system has no more inotify instances
	repo    *gitops.Repository
	files   []string
	config  []string // the user's configuration, often a link to a folder of dotfiles
	rules   []string // the files from which the last cycle read the user's rules
}

// watchOuter watches HEAD, the index, the branch, operations in progress and the settings.
func watchOuter(repo *gitops.Repository, store airlock.Store, r airlock.Record) *outerWatch {
	w := &outerWatch{repo: repo, files: []string{ledger.DecisionsFile(store.Dir(r.ID))}} // a command may have been killed between a verdict and its cycle
	for _, name := range []string{"HEAD", "index", "index.lock", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD",
		"BISECT_LOG", "rebase-merge", "rebase-apply", "sequencer", "config.worktree"} {
		w.files = append(w.files, filepath.Join(repo.GitDir, name))
	}
	for _, name := range []string{r.Branch, r.Ref("pending"), policy.TeamRef, review.NotesRef, checks.NotesRef, "packed-refs", "reftable", "config"} {
		w.files = append(w.files, filepath.Join(repo.CommonDir, name))
	}
	w.config = userConfigFiles()
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return w // the poll remains
	}
	w.watcher = watcher
	go func() {
		for range watcher.Errors { // such as too many events at once; the watcher blocks unless somebody receives its errors
		}
	}()
	for _, dir := range []string{repo.GitDir, repo.CommonDir, filepath.Dir(filepath.Join(repo.CommonDir, r.Branch))} {
		_ = watcher.Add(dir)
	}
	return w
}

// userConfigFiles returns the files in which git looks for the user's configuration (git-config(1), FILES).
func userConfigFiles() []string {
	files := []string{os.Getenv("GIT_CONFIG_GLOBAL")}
	if home, err := os.UserHomeDir(); err == nil {
		files = append(files, filepath.Join(home, ".gitconfig"))
	}
	if dir, err := os.UserConfigDir(); err == nil {
		files = append(files, filepath.Join(dir, "git", "config"))
	}
	return files
}

// Watch sends when the result of [promote.Engine.State] may have changed, until ctx ends: the daemon has written to
// the host state, or the user has changed something outside. It never sends if the system has no more inotify
// instances.
func Watch(ctx context.Context, repo *gitops.Repository, store airlock.Store, r airlock.Record) <-chan struct{} {
	changes := make(chan struct{}, 1)
	w := watchOuter(repo, store, r)
	if w.watcher != nil {
		_ = w.watcher.Add(store.Dir(r.ID))
	}
	go func() {
		defer w.close()
		for {
			select {
			case <-ctx.Done():
				return
			case _, open := <-w.events():
				if !open {
					return
				}
				select {
				case changes <- struct{}{}:
				default: // a change is already waiting
				}
			}
		}
	}()
	return changes
}

// events returns a channel that never sends if there is no inotify.
func (w *outerWatch) events() <-chan fsnotify.Event {
	if w.watcher == nil {
		return nil
	}
	return w.watcher.Events
}

func (w *outerWatch) close() {
	if w.watcher != nil {
		_ = w.watcher.Close()
	}
}

// signature returns a text that changes when one of the outer files changes, or a file that a hold names. While a hold reports a full disk,
// the text also changes when there is room again.
func (w *outerWatch) signature(holds []ledger.Hold) string {
	var b strings.Builder
	for _, name := range w.files {
		sign(&b, name)
	}
	for _, name := range slices.Concat(w.config, w.rules) {
		signTarget(&b, name)
	}
	for _, name := range w.repo.Heads() { // another worktree may have the branch checked out
		sign(&b, name)
	}
	for _, h := range holds {
		for _, p := range h.Places {
			sign(&b, filepath.Join(w.repo.Top, p))
		}
		if h.Reason == ledger.Policy {
			w.signIgnores(&b, h.Paths)
		}
		if h.Reason == ledger.DiskFull {
			// Not the free space itself, which changes all the time.
			fmt.Fprintln(&b, disk.Full(w.repo.CommonDir), unix.Access(w.repo.CommonDir, unix.W_OK), unix.Access(w.repo.GitDir, unix.W_OK))
		}
	}
	return b.String()
}

// signIgnores adds the ignore files in the folders above some paths that the gate holds.
func (w *outerWatch) signIgnores(b *strings.Builder, paths []string) {
	signed := map[string]bool{}
	for _, p := range paths {
		for dir := path.Dir(p); dir != "." && dir != "/" && !signed[dir]; dir = path.Dir(dir) {
			signed[dir] = true
			sign(b, filepath.Join(w.repo.Top, dir, ".gitignore"))
		}
	}
}

// signTarget adds a file that git reads through a symbolic link.
func signTarget(b *strings.Builder, name string) {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	fmt.Fprintf(b, "%q ", name)
	sign(b, name)
}

func sign(b *strings.Builder, name string) {
	info, err := os.Lstat(name)
	if err != nil {
		b.WriteString("-\n")
		return
	}
	fmt.Fprintln(b, info.Mode(), info.Size(), info.ModTime().UnixNano(), inode(info))
}
