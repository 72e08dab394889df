package inside

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestAnswerTooLong writes an endless line instead of an answer. The answer must be empty, and the line must not use memory.
func TestAnswerTooLong(t *testing.T) {
	said := make(chan string, 1)
	var out bytes.Buffer
	a := &answered{said: said, w: &out}
	flood := strings.Repeat("1", 1000)
	for range 3 {
		if n, err := io.WriteString(a, flood); n != len(flood) || err != nil {
			t.Fatal(n, err)
		}
	}
	select {
	case answer := <-said:
		if what(answer) != saysNothing {
			t.Errorf("heard %q", answer)
		}
	default:
		t.Error("it goes on to wait for the line's end")
	}
	if len(a.line) > maxAnswer {
		t.Errorf("keeps %d bytes", len(a.line))
	}
	reader := bufio.NewReader(strings.NewReader(strings.Repeat(flood, 100)))
	if line, err := readLine(reader); !errors.Is(err, bufio.ErrBufferFull) {
		t.Errorf("read %d bytes, %v", len(line), err)
	}
}

// TestAnswer writes an answer and output after it, split at every position.
func TestAnswer(t *testing.T) {
	const text = "p123\nfirst\nsecond"
	for cut := range len(text) {
		said := make(chan string, 1)
		var out bytes.Buffer
		a := &answered{said: said, w: &out}
		for _, part := range []string{text[:cut], text[cut:]} {
			if n, err := io.WriteString(a, part); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if answer := <-said; answer != "p123" || out.String() != "first\nsecond" {
			t.Errorf("cut at %d: %q, then %q", cut, answer, out.String())
		}
	}
}

// TestWithoutLoss writes the runtime's text about the end of its container, and texts of the agent that resemble it.
func TestWithoutLoss(t *testing.T) {
	const id = "0123456789abcdef"
	for text, want := range map[string]string{
		"output\n":                     "output\n",
		lossText + "8: something else": lossText + "8: something else",
		lossText + `8: waiting on PID 8 in sandbox "` + id + `": urpc method "containerManager.WaitPID" failed: EOF` + "\n": "",
		"last\n" + lossText + `8: in sandbox "` + id + `": EOF`:                                                             "last\n",
	} {
		var out bytes.Buffer
		x := &execution{Container: &Container{ID: id}}
		if n, err := io.WriteString(x.withoutLoss(&out), text); n != len(text) || err != nil || out.String() != want || x.torn.Load() != (want != text) {
			t.Errorf("%q: %d, %v, %q, torn %t", text, n, err, out.String(), x.torn.Load())
		}
	}
}
