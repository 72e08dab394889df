package userhook

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// FuzzText checks that a hook is the same after the line was added and removed, and that the line is added once.
func FuzzText(f *testing.F) {
	for _, hook := range []string{"", "#!/bin/sh", "#!/bin/sh\n", "#!/bin/sh\nexit 0", "exit 0\r\n", "\n", "#!/usr/bin/env bash\nset -e\n", "\xef\xbb\xbf#!/bin/sh\n", "#!\n\n"} {
		f.Add([]byte(hook))
	}
	f.Fuzz(func(t *testing.T, hook []byte) {
		if _, there := without(hook); there {
			return
		}
		with := insert(hook)
		if again := insert(with); !bytes.Equal(again, with) {
			t.Errorf("%q became %q", with, again)
		}
		if rest, there := without(with); !there || !bytes.Equal(rest, hook) {
			t.Errorf("%q became %q", hook, rest)
		}
	})
}

// TestUnsuitableHooks checks in which hooks the line works.
func TestUnsuitableHooks(t *testing.T) {
	for hook, fits := range map[string]bool{
		"": true, "exit 0\n": true, "#!/bin/sh": true, "#! /bin/sh -e\n": true, "#!/usr/bin/env bash\n": true, "#!/usr/bin/env -S A=b zsh -f\n": true,
		"#!/usr/bin/python3\n": false, "#!/usr/bin/env node\n": false, "#!/bin/sh\r\nexit\r\n": false, "\x7fELF\x00": false, "#!/usr/bin/env\n": false, "#!\n": false,
	} {
		if why := unfit([]byte(hook)); (why == "") != fits {
			t.Errorf("%q: %q", hook, why)
		}
	}
}

// TestFolderThatCannotBeMade checks that the error names the reason: core.hooksPath can be a link that leads nowhere.
func TestFolderThatCannotBeMade(t *testing.T) {
	dir := t.TempDir()
	hooks := filepath.Join(dir, "hooks")
	if err := os.Symlink("missing", hooks); err != nil {
		t.Fatal(err)
	}
	if _, err := (Place{File: filepath.Join(hooks, "pre-push"), common: dir}).Install(); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
}
