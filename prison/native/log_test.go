//go:build linux

package native_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native"
)

// TestCommandLog launches a command with more output than a log keeps.
func TestCommandLog(t *testing.T) {
	b, s := prepared(t)
	start(t, b, s)
	p := attach(t, b, s)
	script := "head -c 5000000 /dev/zero | tr '\\0' x; echo; echo the end"
	if err := p.Launch(t.Context(), prison.Process{Argv: []string{"sh", "-c", script}}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.Dir, "command.log")
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		content, _ := os.ReadFile(path)
		if bytes.HasSuffix(content, []byte("the end\r\n")) {
			if len(content) < 1<<20 || len(content) > 2<<20 {
				t.Errorf("the log has %d bytes", len(content))
			}
			return
		}
		if time.Since(begun) > patience {
			t.Fatalf("the log's end did not come; it has %d bytes", len(content))
		}
	}
}

// TestLogOfAFullDisk writes more output than a log keeps, where a second file can be made and where none can.
func TestLogOfAFullDisk(t *testing.T) {
	const longestPath = 4095 // PATH_MAX without the final byte
	deep := t.TempDir()
	for len(deep) < longestPath-len("/command.log")-2 { // a new file would have a longer name
		deep = filepath.Join(deep, strings.Repeat("d", min(200, longestPath-len("/command.log")-2-len(deep))))
		if err := os.Mkdir(deep, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, dir := range map[string]string{"room": t.TempDir(), "no room": deep} {
		t.Run(name, func(t *testing.T) {
			var all []byte
			var pieces [][]byte
			for i := range 40 {
				piece := bytes.Repeat([]byte(strconv.Itoa(i)+" "), native.LogKept/40)
				pieces, all = append(pieces, piece), append(all, piece...)
			}
			log, err := native.WriteLog(dir, pieces...)
			if err != nil || len(log) < native.LogKept || len(log) > 2*native.LogKept+len(pieces[0]) || !bytes.HasSuffix(all, log) {
				t.Errorf("%d bytes of %d, %v", len(log), len(all), err)
			}
		})
	}
}
