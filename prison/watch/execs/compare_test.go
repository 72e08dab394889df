package execs

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestZeroBytesHideNoCall makes calls, some of which another thread changes before the kernel copies the arguments. The program then
// overwrites commas or any bytes with zero bytes, and may change the kernel's list. A call that nobody has changed must not be disputed if
// only commas were overwritten. Any record that is not disputed must state no other bytes and beginnings of words than those that the
// kernel copied.
func TestZeroBytesHideNoCall(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	const from = 0x7ffc0000
	word := func() string {
		b := make([]byte, random.IntN(4))
		for i := range b {
			b[i] = ",:a"[random.IntN(3)]
		}
		return string(b)
	}
	raced, accepted := 0, 0
	for range 300000 {
		asked := call{path: "p", argv: []string{"p"}}
		for range random.IntN(4) {
			asked.argv = append(asked.argv, word())
		}
		copied := slices.Clone(asked.argv)
		if random.IntN(2) > 0 { // a race: one byte of the memory, a zero byte in it or another word
			memory := []byte(strings.Join(copied, "\x00"))
			if random.IntN(2) > 0 && len(copied) > 1 {
				copied[1+random.IntN(len(copied)-1)] = word()
			} else if len(memory) > 1 {
				memory[1+random.IntN(len(memory)-1)] = "\x00,:a"[random.IntN(4)]
				copied = strings.Split(string(memory), "\x00")
			}
		}
		script := random.IntN(4) == 0
		words := copied
		if script {
			words = append([]string{"sh", "-e", "p"}, copied[1:]...)
		}
		memory, pointers, at := []byte(strings.Join(words, "\x00")), []uint64(nil), uint64(from)
		for _, w := range words {
			pointers = append(pointers, at)
			at += uint64(len(w)) + 1
		}
		commas := random.IntN(3) > 0
		for i, c := range memory {
			if (c == ',' || !commas && i > len("sh.-e.p")) && random.IntN(2) > 0 {
				memory[i] = 0
			}
		}
		random.Shuffle(len(pointers), func(i, j int) { pointers[i], pointers[j] = pointers[j], pointers[i] })
		if random.IntN(4) == 0 {
			pointers[random.IntN(len(pointers))] = from * uint64(random.IntN(3))
		}
		plain := given{path: "p", argv: strings.Split(string(memory), zero)}
		if asked.gave(plain) {
			continue // the copy is what the process asked for: a program may have made it so, see doc.go
		}
		got, _ := plain.divided(from, pointers)
		recorded, ok := asked.known(got)
		same := slices.Equal(copied, asked.argv)
		if same && commas && !ok && !script && slices.Contains(pointers, from) {
			t.Fatalf("%q was given %q and cut to %q, and is disputed", asked.argv, copied, memory)
		}
		if !ok {
			continue
		}
		if accepted++; !same {
			raced++
		}
		if !shows(recorded, copied) {
			t.Fatalf("%q was given %q and cut to %q, and the record is %q", asked.argv, copied, memory, recorded)
		}
	}
	if raced == 0 || accepted < 10000 {
		t.Errorf("%d records, %d after a race", accepted, raced)
	}
	t.Logf("%d records, %d after a race", accepted, raced)
}

// shows reports whether each word of a record begins with a word that the kernel copied, and has the same bytes, or zero bytes.
func shows(recorded, copied []string) bool {
	starts := func(words []string) (all []int) {
		at := 0
		for _, w := range words {
			all = append(all, at)
			at += len(w) + 1
		}
		return all
	}
	r, c := strings.Join(recorded, zero), strings.Join(copied, zero)
	for _, start := range starts(recorded) {
		if !slices.Contains(starts(copied), start) {
			return false
		}
	}
	for i := range min(len(r), len(c)) {
		if r[i] != c[i] && r[i] != 0 {
			return false
		}
	}
	return len(r) == len(c)
}

// TestKernelsListDividesWords checks that a changed list of the arguments divides nothing, and that no list is read beyond the words.
func TestKernelsListDividesWords(t *testing.T) {
	t.Parallel()
	got := given{argv: []string{"p", "a", "b", "c"}} // the program has cut "a,b"
	for _, c := range []struct {
		name     string
		pointers []uint64
		want     []string
	}{
		{"as the kernel wrote it", []uint64{100, 102, 106}, []string{"p", "a\x00b", "c"}},
		{"in another order", []uint64{106, 100, 102}, []string{"p", "a\x00b", "c"}},
		{"none", nil, nil},
		{"another beginning", []uint64{102, 106}, nil},
		{"a word in place of another", []uint64{100, 102, 100}, []string{"p", "a\x00b\x00c"}},
		{"the middle of a word", []uint64{100, 101}, nil},
		{"a text elsewhere", []uint64{100, 108, 106, 1 << 63}, []string{"p\x00a\x00b", "c"}},
		{"a zero pointer", []uint64{100, 102, 0}, []string{"p", "a\x00b\x00c"}},
	} {
		divided, ok := got.divided(100, c.pointers)
		if ok != (c.want != nil) || ok && (!slices.Equal(divided.argv, c.want) || len(c.want)+divided.hidden != len(c.pointers)) {
			t.Errorf("%s: %q, %d hidden, %v", c.name, divided.argv, divided.hidden, ok)
		}
	}
}
