package inner

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// CheckSizes returns an error for objects that git in the workspace reports as larger than the limits. It only refuses early, and is not a safe
// check, since the agent can falsify the sizes. The sizes are checked again outside.
func (w Workspace) CheckSizes(ctx context.Context, tip gitops.OID, known []gitops.OID, limits Limits) error {
	return limits.CheckSizes(tip, known, func(in io.Reader, out io.Writer, args ...string) error { return w.git(ctx, in, out, args...) })
}

// CheckSizes returns an error for objects that are reachable from tip but not from known, and that are larger than
// the limits. It runs two git processes at the same time. Git reads the size from the header of an object, without
// inflating it or applying deltas. Only the listing inflates objects, the commits, so tip is checked before it. In a workspace, the listing fails at
// a commit that is far too large.
func (l Limits) CheckSizes(tip gitops.OID, known []gitops.OID, git func(stdin io.Reader, stdout io.Writer, args ...string) error) error {
	const sizes = "--batch-check=%(objecttype) %(objectsize) %(objectname)"
	first := &sizeChecker{limits: l, stop: func() {}}
	if err := git(strings.NewReader(string(tip)+"\n"), first, "cat-file", sizes); first.refused != nil || err != nil {
		return cmp.Or(first.refused, err)
	}
	r, w := io.Pipe()
	defer r.Close()
	listed := make(chan error, 1)
	go func() {
		list := append([]string{"rev-list", "--objects", "--no-object-names", "--ignore-missing", string(tip), "--not"}, gitops.Names(known)...)
		err := git(nil, w, list...)
		w.CloseWithError(err)
		listed <- err
	}()
	// An error also ends the listing.
	check := &sizeChecker{limits: l, stop: func() { r.CloseWithError(gitops.ErrOutput) }}
	err := git(r, check, "cat-file", sizes)
	if check.refused != nil || err != nil {
		return cmp.Or(check.refused, err)
	}
	return <-listed // a prison does not report that the input has ended with an error
}

// sizeChecker reads lines "type size name", and fails at the first object that is too large by itself or together
// with earlier ones.
type sizeChecker struct {
	limits  Limits
	files   int64 // bytes of all files
	rest    []byte
	refused error
	stop    func()
}

func (s *sizeChecker) Write(p []byte) (int, error) {
	s.rest = append(s.rest, p...)
	for {
		line, rest, found := bytes.Cut(s.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		s.rest = rest
		var kind, name string
		var size int64
		if _, err := fmt.Sscanf(string(line), "%s %d %s", &kind, &size, &name); err != nil {
			continue // Connected reports "<name> missing"
		}
		if s.refused = s.refuse(kind, gitops.OID(name), size); s.refused != nil {
			s.stop()
			return 0, s.refused
		}
	}
}

// refuse returns the error for one object, or for all files together. There may be as many trees as files.
func (s *sizeChecker) refuse(kind string, id gitops.OID, size int64) error {
	if err := s.limits.Check(kind, id, size); err != nil || kind != "blob" {
		return err
	}
	if s.files += size; s.files > s.limits.Pack {
		return Beyondf("the new files take more, when they are unpacked, than airlock.limit.pack allows (%d bytes)", s.limits.Pack)
	}
	return nil
}

// Check returns an error if an object is larger than the limit for its type.
func (l Limits) Check(kind string, id gitops.OID, size int64) error {
	key, limit := "blob", l.Blob
	switch kind {
	case "tree":
		return nil
	case "commit", "tag":
		key, limit = "commit", l.Commit
	}
	if size <= limit {
		return nil
	}
	return Beyondf("%s %s has %d bytes, more than airlock.limit.%s allows (%d)", kind, id, size, key, limit)
}
