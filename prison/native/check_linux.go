package native

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native/usernet"
	"github.com/git-airlock/git-airlock/prison/native/walls"
)

// check returns an error for a spec that this backend cannot fulfil.
func check(s prison.Spec) error {
	switch {
	case s.ID == "", s.User == "", s.Hostname == "":
		return errors.New("native prison: ID, User and Hostname are required")
	case !filepath.IsAbs(s.Dir), !filepath.IsAbs(s.Workspace):
		return errors.New("native prison: Dir and Workspace must be absolute paths")
	case s.UID <= 0, s.GID <= 0:
		return fmt.Errorf("native prison: uid %d, gid %d: want a phantom's", s.UID, s.GID)
	case s.User != filepath.Base(s.User), s.User == ".", s.User == "..":
		return fmt.Errorf("native prison: user name %q", s.User)
	}
	if s.Image != "" || s.Runtime != "" {
		return walls.Unavailable("it has neither images nor runtimes; another root file system can be a folder")
	}
	if err := checkGiven(s); err != nil {
		return err
	}
	return usernet.Check(s, tryPair)
}

// maxTools limits the number of descriptors from which a prison is built.
const maxTools = 32

// checkGiven returns an error for folders and files that cannot be shared with a prison.
func checkGiven(s prison.Spec) error {
	if len(s.Tools) > maxTools {
		return fmt.Errorf("native prison: %d tools; at most %d", len(s.Tools), maxTools)
	}
	names := map[string]bool{}
	for _, t := range s.Tools {
		switch {
		case !filepath.IsAbs(t.Path):
			return fmt.Errorf("native prison: tool %q: want an absolute path", t.Path)
		case t.Name != filepath.Base(t.Name), t.Name == ".", t.Name == "..", strings.ContainsAny(t.Name, ":/\n"):
			return fmt.Errorf("native prison: tool name %q", t.Name)
		case names[t.Name]:
			return fmt.Errorf("native prison: two tools are called %q", t.Name)
		}
		names[t.Name] = true
		if err := readableToAll(t.Path); err != nil {
			return fmt.Errorf("native prison: tool: %w", err)
		}
	}
	if s.Root == "" {
		return nil
	}
	if !filepath.IsAbs(s.Root) {
		return fmt.Errorf("native prison: root %q: want an absolute path", s.Root)
	}
	if err := readableToAll(s.Root); err != nil {
		return fmt.Errorf("native prison: root: %w", err)
	}
	return nil
}

func readableToAll(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.IsDir() && !info.Mode().IsRegular():
		return fmt.Errorf("%q is neither a file nor a folder", path)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%q: nobody can execute it: %w", path, os.ErrPermission)
	case info.Mode()&0o005 != 0o005:
		return fmt.Errorf("%q: only its owner can read and execute it: %w", path, os.ErrPermission)
	}
	return nil
}
