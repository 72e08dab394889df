package checkpoints

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/snapshot/checkpoint"
	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// TestCheckpointTextHasNoSecret checks the text of checkpoints, which the daemon's log gets too if there is none.
func TestCheckpointTextHasNoSecret(t *testing.T) {
	secret := "ghp_" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2"
	if got := text("after", []string{"agent", "--api-key", secret}); strings.Contains(got, secret) || !strings.HasPrefix(got, "after agent --api-key ") {
		t.Error(got)
	}
	if got := text("after", []string{"x" + strings.Repeat("\u00e4", longestCommand)}); !utf8.ValidString(got) {
		t.Errorf("%q", got)
	}
	if got := text("after", nil); got != "after" {
		t.Error(got)
	}
}

// TestAdviseOnUnreadableFiles checks that a message stays short, whatever the names of files are, and that its hint takes any name.
func TestAdviseOnUnreadableFiles(t *testing.T) {
	for path, hint := range map[string]string{
		"-R":                        "git airlock visit -- chmod u+rwX -- -R",
		"a b":                       "git airlock visit -- chmod u+rwX -- 'a b'",
		strings.Repeat("d/", 9_000): "git airlock visit",
	} {
		err := advise(&checkpoint.Unreadable{Paths: []string{path}, Reason: "permission denied", Count: 1})
		refused, ok := errors.AsType[*environment.Advised](err)
		if !ok || !slices.Equal(refused.Next, []string{hint}) || len(err.Error()) > 500 {
			t.Errorf("%.20q: %.200v, %+v", path, err, refused)
		}
	}
	err := advise(&checkpoint.Unreadable{Paths: []string{"a"}, Reason: syscall.EAGAIN.Error(), Count: 1}) // see F_SETLEASE in fcntl(2)
	if leased, ok := errors.AsType[*environment.Advised](err); !ok || !strings.HasPrefix(leased.Next[0], "git airlock stop && git airlock start ") {
		t.Errorf("%+v", leased)
	}
}

// TestAdviseOnLargeFiles checks that the proposed limit suffices, and that none is proposed for a file that no checkpoint can have.
func TestAdviseOnLargeFiles(t *testing.T) {
	for _, c := range []struct {
		bytes, largest int64
		hint           string
	}{
		{1000, 1000, "git config airlock.checkpoint.max 8g"},
		{10 << 30, 9 << 30, "git config airlock.checkpoint.max 13g"},
		{100 << 30, 1 << 30, "git config airlock.checkpoint.max 126g"},
		{math.MaxInt64, 1, "git config airlock.checkpoint.max 8589934591g"},
		{math.MaxInt64, math.MaxInt64, "git airlock visit -- ls -l -- 'a b'  # too large for any checkpoint"},
	} {
		err := advise(fmt.Errorf("take: %w", &checkpoint.TooLarge{Bytes: c.bytes, Largest: c.largest, Path: "a b"}))
		large, ok := errors.AsType[*environment.Advised](err)
		if !ok || !slices.Equal(large.Next, []string{c.hint}) || !errors.Is(err, checkpoint.ErrTooLarge) {
			t.Errorf("%d bytes: %v, %+v", c.bytes, err, large)
		}
	}
}

// TestAdviseOnDeepFolders checks that the proposed command removes only the inner folders of a chain, and is short.
func TestAdviseOnDeepFolders(t *testing.T) {
	for _, c := range []struct{ path, keep string }{
		{strings.Repeat("d/", files.MaxDepth) + "d", strings.Repeat("d/", 50) + "d"},
		{strings.Repeat(strings.Repeat("n", 255)+"/", files.MaxDepth), strings.Repeat(strings.Repeat("n", 255)+"/", 6) + strings.Repeat("n", 255)},
		{"a b/" + strings.Repeat("d/", files.MaxDepth), "'a b/" + strings.Repeat("d/", 49) + "d'"},
	} {
		err := advise(&checkpoint.Unreadable{Paths: []string{c.path}, Reason: files.ErrTooDeep.Error(), Count: 1})
		if deep, ok := errors.AsType[*environment.Advised](err); !ok || !slices.Equal(deep.Next, []string{"git airlock visit -- rm -rf -- " + c.keep}) {
			t.Errorf("%.20q: %+v", c.path, deep)
		}
	}
}
