package inside

import (
	"io"
	"net"
	"path/filepath"
	"testing"
)

// TestSlowJoinerGetsAll ends a command before a joiner has read the last piece of output.
func TestSlowJoinerGetsAll(t *testing.T) {
	log, err := openTail(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	ours, theirs := net.Pipe() // a write ends when its data was read
	s := &shared{log: log}
	j := newJoiner(ours)
	s.add(j)
	go j.serve()
	if _, err := s.Write([]byte("the last line\n")); err != nil {
		t.Fatal(err)
	}
	begins := make([]byte, 4)
	if _, err := io.ReadFull(theirs, begins); err != nil { // now the piece is no longer in the queue
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		rest, _ := io.ReadAll(theirs)
		read <- string(rest)
	}()
	s.disconnect()
	select {
	case <-j.done:
	default:
		t.Error("disconnected before the joiner had read everything")
	}
	if got := string(begins) + <-read; got != "the last line\n" {
		t.Errorf("%q", got)
	}
}

// TestJoinerGetsModes checks that a joiner first receives the modes of the terminal, and then the output.
func TestJoinerGetsModes(t *testing.T) {
	log, err := openTail(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s := &shared{log: log}
	for _, output := range []string{"text\x1b[?20", "04h\x1b]0;title\x07\x1b[?25l"} {
		if _, err := s.Write([]byte(output)); err != nil {
			t.Fatal(err)
		}
	}
	ours, theirs := net.Pipe()
	j := newJoiner(ours)
	s.add(j)
	go j.serve()
	if _, err := s.Write([]byte("more")); err != nil {
		t.Fatal(err)
	}
	go s.disconnect()
	if got, err := io.ReadAll(theirs); err != nil || string(got) != "\x1b[?2004h\x1b[?25lmore" {
		t.Errorf("%q, %v", got, err)
	}
}
