package files

import (
	"bytes"
	"context"
	"io"
	"testing"
)

// FuzzAnswers checks that a client accepts no invalid name from any answers of a prison.
func FuzzAnswers(f *testing.F) {
	var b bytes.Buffer
	w := newWriter(&b)
	for _, e := range []Entry{{Kind: Folder}, {Kind: Link, Depth: 1, Name: "a", Target: "/"}, {Kind: Regular, Depth: 1, Name: "b", Stat: Stat{Size: 3}}} {
		w.kind(isEntry)
		w.entry(e)
	}
	w.kind(isEnd)
	if err := w.Flush(); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("e"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		run := func(_ context.Context, _ []string, in io.Reader, out, _ io.Writer) (int, error) {
			go io.Copy(io.Discard, in) // ends with the client
			_, err := out.Write(answer)
			return 0, err
		}
		c := Start(t.Context(), run)
		err := c.Walk(true, func(e Entry) error {
			if e.Depth > 0 && CheckName(e.Name) != nil || e.Depth > MaxDepth+1 || len(e.Target) > longestTarget {
				t.Errorf("%+v", e)
			}
			return nil
		})
		if err == nil && !bytes.HasSuffix(answer, []byte{isEnd}) && !bytes.Contains(answer, []byte{isEnd}) {
			t.Error("an answer without an end is accepted")
		}
		c.Close() // an error is accepted, since the answer may have been invalid
	})
}
