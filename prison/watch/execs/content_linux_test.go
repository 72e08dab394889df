package execs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func waiting() bool { return true }

// TestDigestOfChangedFile checks that a digest is that of the present content, also if the file changes again within one step of the clock, and
// that a digest is kept if the file does not change.
func TestDigestOfChangedFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "program")
	d := digests{map[contentID]string{}, &budget{}}
	for n := range 300 {
		content := []byte{'a' + byte(n%26)}
		if err := os.WriteFile(name, content, 0o700); err != nil {
			t.Fatal(err)
		}
		want := sha256.Sum256(content)
		if got := d.of(os.Getpid(), "/", call{path: name}, waiting); got != hex.EncodeToString(want[:]) {
			t.Fatalf("change %d: %s", n, got)
		}
	}
	if len(d.known) > 0 {
		t.Errorf("%d digests of a file that changed just now are kept", len(d.known))
	}
	time.Sleep(changedAgain)
	for range 3 {
		d.of(os.Getpid(), "/", call{path: name}, waiting)
	}
	if left := d.budget.left; len(d.known) != 1 || left > contentBurst {
		t.Errorf("%d digests are kept, %d bytes are left", len(d.known), left)
	}
}

// TestBudget checks that the bytes that are read in a time are bounded, and that nobody waits for a process that has ended.
func TestBudget(t *testing.T) {
	t.Parallel()
	const part = 1 << 20
	var b budget
	begun := time.Now()
	read, now := int64(0), begun
	for now.Sub(begun) < 10*time.Second {
		wait := b.take(part, now)
		if wait == 0 {
			read += part
		}
		now = now.Add(max(wait, time.Microsecond))
	}
	if most := int64(contentBurst + 10*contentRate + part); read > most || read < most-2*contentRate {
		t.Errorf("%d MiB in 10 s", read>>20)
	}
	name := filepath.Join(t.TempDir(), "program")
	// As many bytes come in eight seconds: no wait for a processor is that long.
	if err := errors.Join(os.WriteFile(name, nil, 0o700), os.Truncate(name, contentBurst)); err != nil {
		t.Fatal(err)
	}
	spent := &budget{since: time.Now().Add(time.Hour)}
	d := digests{map[contentID]string{}, spent}
	asked := 0
	sum := d.of(os.Getpid(), "/", call{path: name}, func() bool { asked++; return asked < 3 })
	if sum != "" || asked != 3 || len(d.known) > 0 {
		t.Errorf("digest %q after %d questions", sum, asked)
	}
}
