package credential

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// spellings are ways in which a server writes a text, as far as they are not plain. Those with lines are for base64 alone.
var spellings = []func(string) string{
	func(s string) string { return s },
	func(s string) string { return each(s, "%%%02x") },
	func(s string) string { return each(s, `\u%04X`) },
	func(s string) string { return each(s, "&#x%05x;") },
	func(s string) string { return strings.ReplaceAll(s, "/", `\/`) },
	func(s string) string { return lines(s, 76, "\n") },
	func(s string) string { return lines(s, 64, "\r\n") },
	func(s string) string { return lines(s, 60, `\n`) },
	func(s string) string { return lines(strings.ReplaceAll(s, "/", `\/`), 64, `\r\n`) },
	func(s string) string { return lines(s, 30, "\n    ") },
	func(s string) string { return lines(s, 1, "\r") },
}

const plainSpellings = 5

func each(s, format string) (text string) {
	for i := range len(s) {
		text += fmt.Sprintf(format, s[i])
	}
	return text
}

func lines(s string, width int, end string) (text string) {
	for part := range slices.Chunk([]byte(s), width) {
		text += string(part) + end
	}
	return strings.TrimSuffix(text, end)
}

// longValue is as long as the keys of some services, so that its base64 has several lines.
const longValue = "sk-ant-api03-" + `A/b+0?>~y9Qm` + "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefghijklmnopqrst"

// spelled returns a form of the value: which of the alternatives is up to random.
func spelled(random *rand.Rand) (form string, spell func(string) string) {
	if random.IntN(3) == 0 {
		return longValue, spellings[random.IntN(plainSpellings)]
	}
	encoding := []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding}[random.IntN(3)]
	return encoding.EncodeToString([]byte(strings.Repeat("u", random.IntN(7)) + longValue)), spellings[random.IntN(len(spellings))]
}

// filler returns some content that is in no form.
func filler(random *rand.Rand) (text string) {
	for range random.IntN(30) {
		text += []string{" ", ".", "data: {}", "\n", "\r\n", "\n\n", "\r\n\r\n", "\r", "}\n", "100%", `\`, "&", "&am", strings.Repeat("~", random.IntN(900)), `{"a":"\n\u0041"}`}[random.IntN(15)]
	}
	return text + "\x01" // ends an escape
}

// cut cuts a text into pieces.
func cut(random *rand.Rand, text string) (pieces []string) {
	for text != "" {
		n := min(len(text), 1+random.IntN([]int{1, 20, 3000}[random.IntN(3)]))
		pieces, text = append(pieces, text[:n]), text[n:]
	}
	return pieces
}

// inPieces is content that arrives in pieces.
type inPieces struct {
	pieces []string
	read   int
}

func (p *inPieces) Read(b []byte) (int, error) {
	if p.read == len(p.pieces) {
		return 0, io.EOF
	}
	n := copy(b, p.pieces[p.read])
	if p.pieces[p.read] = p.pieces[p.read][n:]; p.pieces[p.read] == "" {
		p.read++
	}
	return n, nil
}

func (*inPieces) Close() error { return nil }

// received returns what a client sees: the content, and after how much of the answer it gets how much of that.
func received(pieces []string) (got string, seen []int, err error) {
	content := &inPieces{pieces: slices.Clone(pieces)}
	answer := &http.Response{StatusCode: 200, Body: content}
	if err := echoesOf(longValue).Guard(answer, func() {}); err != nil {
		return "", nil, err
	}
	buffer := make([]byte, 2048)
	for {
		n, err := answer.Body.Read(buffer)
		got, seen = got+string(buffer[:n]), append(seen, content.read, n)
		if err != nil {
			return got, seen, err
		}
	}
}

// TestGuessesAreNotAnswered has a program inside guess the beginning of a value, or of another form of it. A right guess arrives in the same
// pieces as a wrong one, and each piece at the same time.
func TestGuessesAreNotAnswered(t *testing.T) {
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 1))
		form, spell := spelled(random)
		at := 1 + random.IntN(len(form)-10)
		right, wrong := []byte(form[:at]), []byte(form[:at])
		from := random.IntN(at)
		if random.IntN(2) == 0 {
			from = at - 1
		}
		for i := from; i < at; i++ {
			if c := wrong[i]; c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' {
				wrong[i] = "QZ"[random.IntN(2)]
			}
		}
		before, after := filler(random), filler(random)
		if random.IntN(2) == 0 {
			after = "" // the guess ends the content
		}
		one, other := before+spell(string(right))+after, before+spell(string(wrong))+after
		pieces, otherPieces := cut(random, one), []string(nil)
		for _, p := range pieces {
			otherPieces, other = append(otherPieces, other[:len(p)]), other[len(p):]
		}
		got, seen, err := received(pieces)
		otherGot, otherSeen, otherErr := received(otherPieces)
		if !slices.Equal(seen, otherSeen) || !errors.Is(err, io.EOF) || !errors.Is(otherErr, io.EOF) || got != one || otherGot != strings.Join(otherPieces, "") {
			t.Fatalf("seed %d, %q:\n%v, %v\n%v, %v", seed, right, seen, err, otherSeen, otherErr)
		}
	}
}

// TestEachFormIsCut has a server send the value in each form.
func TestEachFormIsCut(t *testing.T) {
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 2))
		form, spell := spelled(random)
		before, after := filler(random), filler(random)
		if random.IntN(2) == 0 {
			after = ""
		}
		echo := spell(form)
		got, _, err := received(cut(random, before+echo+after))
		if !errors.Is(err, ErrEcho) || !strings.HasPrefix(before, got) {
			t.Fatalf("seed %d: %q is not cut: %q, %v", seed, echo, got, err)
		}
		if err := echoesOf(longValue).Guard(&http.Response{Header: http.Header{"X-A": {"b", before + echo + after}}}, func() {}); !errors.Is(err, ErrEcho) {
			t.Fatalf("seed %d: %q is in a header: %v", seed, echo, err)
		}
	}
}

// TestShortValuesAreCut has values of which a form is shorter than what is looked for at once.
func TestShortValuesAreCut(t *testing.T) {
	for n := 1; n <= 12; n++ {
		short := longValue[len(longValue)-n:]
		e := echoesOf(short)
		for name, text := range map[string]string{"as it is": short, "in a text": ".." + short + "..", "escaped": each(short, "%%%02x"), "base64": base64.StdEncoding.EncodeToString([]byte(short + "  "))} {
			if got := e.search(); !got.add([]byte(text)) && !got.end() {
				t.Errorf("%d characters, %s: not found in %q", n, name, text)
			}
		}
		if n > 1 && e.search().add([]byte(short[:n-1])) {
			t.Errorf("%d characters: found in a part", n)
		}
	}
}

// TestHeldBack checks how much of each kind of stream is held back.
func TestHeldBack(t *testing.T) {
	most := echoesOf(longValue).heldBack()
	long := strings.Repeat("x", 3*most)
	for text, held := range map[string]int{
		"": 0, "data: x\n\n": 0, "data: x\r\n\r\n": 0, "data: x\r\r": 0, "\n": 0, "\r\n": 0, "data: x\n": 8, "data: x\r\n": 9, "data: x": 7, "data: x\n\ny": 1, `{"a":1}` + "\n": 0, "[1]\r\n": 0, "{}": 2, "{} \n": 4,
		long: most, long + "\n\n": 0, "x\n\n" + long: most, long + "\n\n" + "abc": 3,
	} {
		for _, size := range []int{1, 7, len(text) + 1} {
			var content []byte
			kept := 0
			for piece := range slices.Chunk([]byte(text), size) {
				content = append(content, piece...)
				content = content[released(content, kept, most):]
				kept = len(content)
			}
			if kept != held {
				t.Errorf("%.20q of %d bytes, %d at a time: %d are held back, want %d", text, len(text), size, kept, held)
			}
		}
	}
}

// TestSwitchedProtocols checks that the words of a server about another protocol are not passed on.
func TestSwitchedProtocols(t *testing.T) {
	var sent bytes.Buffer
	answer := &http.Response{Status: "101 " + value, StatusCode: 101, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Upgrade": {"websocket"}}}
	if err := echoesOf(value).Guard(answer, t.FailNow); err != nil {
		t.Fatal(err)
	}
	if err := answer.Write(&sent); err != nil || !strings.HasPrefix(sent.String(), "HTTP/1.1 101 Switching Protocols\r\n") {
		t.Errorf("%q, %v", &sent, err)
	}
}

// BenchmarkGuard searches several kinds of content.
func BenchmarkGuard(b *testing.B) {
	binary := make([]byte, 4<<20)
	for i := range binary {
		binary[i] = byte(rand.Uint32())
	}
	for name, content := range map[string][]byte{
		"binary": binary, "text": bytes.Repeat([]byte("abcdefgh ijkl mnop\n"), 200000), "JSON": bytes.Repeat([]byte(`{"a":"some text \"b\" and\nmore"},`+"\n"), 100000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(content)))
			for b.Loop() {
				answer := &http.Response{StatusCode: 200, Body: io.NopCloser(bytes.NewReader(content))}
				if err := echoesOf(longValue).Guard(answer, b.FailNow); err != nil {
					b.Fatal(err)
				}
				if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, answer.Body, make([]byte, 16<<10)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
