package hostenv

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// place is a git directory, and the work tree in which it was found.
type place struct{ top, gitDir string }

// findTrees returns the work trees around a folder: that of each repository above it, the linked ones of each, and
// those that the variables and the repositories' settings name. An unnecessary work tree does no harm.
func findTrees(dir string, original map[string]string) []Tree {
	places := []place{}
	for at := dir; ; at = filepath.Dir(at) {
		if git := filepath.Join(at, ".git"); exists(git) {
			places = append(places, place{at, gitDirectory(git)})
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	if named := original["GIT_DIR"]; named != "" {
		places = append(places, place{dir, gitDirectory(from(dir, named))})
	}
	if named := original["GIT_WORK_TREE"]; named != "" {
		places = append(places, place{from(dir, named), ""})
	}
	var tops []string
	for _, p := range places {
		tops = append(append(tops, p.top), p.others()...)
	}
	slices.Sort(tops)
	var trees []Tree
	for _, top := range slices.Compact(tops) {
		if top != "/" {
			trees = append(trees, NewTree(top))
		}
	}
	return trees
}

// others lists the other work trees of a repository: the main one, the linked ones, and the one in its settings.
func (p place) others() []string {
	if p.gitDir == "" {
		return nil
	}
	common := p.gitDir
	if text, err := os.ReadFile(filepath.Join(p.gitDir, "commondir")); err == nil {
		common = from(p.gitDir, firstLine(text))
	}
	var tops []string
	if filepath.Base(common) == ".git" {
		tops = append(tops, filepath.Dir(common))
	}
	entries, _ := os.ReadDir(filepath.Join(common, "worktrees"))
	for _, e := range entries {
		folder := filepath.Join(common, "worktrees", e.Name())
		if text, err := os.ReadFile(filepath.Join(folder, "gitdir")); err == nil {
			tops = append(tops, filepath.Dir(from(folder, firstLine(text))))
		}
	}
	for _, file := range []string{filepath.Join(common, "config"), filepath.Join(p.gitDir, "config.worktree")} {
		text, _ := os.ReadFile(file)
		for _, m := range worktreeSetting().FindAllSubmatch(text, -1) {
			tops = append(tops, from(p.gitDir, strings.Trim(string(m[1]), `"`)))
		}
	}
	return tops
}

// worktreeSetting matches core.worktree as git writes it into a configuration file.
var worktreeSetting = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?mi)^\s*worktree\s*=\s*(\S.*?)\s*$`) })

// gitDirectory returns the git directory of a ".git": the folder itself, or the one that the file names.
func gitDirectory(git string) string {
	if text, err := os.ReadFile(git); err == nil {
		if named, ok := strings.CutPrefix(firstLine(text), "gitdir: "); ok {
			return from(filepath.Dir(git), named)
		}
	}
	return git
}

func firstLine(text []byte) string {
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(line, "\r")
}

// from returns a path that is relative to a folder.
func from(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
