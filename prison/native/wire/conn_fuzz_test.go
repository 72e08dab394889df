//go:build linux

package wire

import (
	"testing"
	"time"
)

// FuzzReceive sends arbitrary bytes through the keeper's socket.
func FuzzReceive(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x02{}\x00\x00\x00\x0e{\"argv\":[\"sh\"]}"))
	f.Add([]byte("\x7f\xff\xff\xff"))
	f.Add([]byte("\x00\x00"))
	f.Fuzz(func(t *testing.T, said []byte) {
		ours, theirs, err := Pair()
		if err != nil {
			t.Fatal(err)
		}
		defer ours.Close()
		sender, err := FileConn(theirs)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer sender.Close()
			sender.Write(said) // the reader may have stopped reading
		}()
		if err := ours.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		// Each message takes at least four bytes.
		for range len(said)/4 + 1 {
			var m map[string]any
			files, err := ours.Recv(&m)
			if len(files) > 0 {
				t.Error("descriptors from nowhere")
			}
			if err != nil {
				if n, ok := err.(interface{ Timeout() bool }); ok && n.Timeout() {
					t.Error(err)
				}
				return
			}
		}
		t.Errorf("more messages than %d bytes can hold", len(said))
	})
}
