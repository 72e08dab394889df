package secrets

// words finds which of many words are in a text, in one pass and whatever their number, without regard to
// the case of ASCII letters: the automaton of Aho and Corasick.
type words struct {
	class [256]byte // of each byte; 0 for those in no word
	next  [][]int32 // state and class to state
	tags  [][]int   // of the words that end in a state
}

type wordsBuilder struct {
	class   [256]byte
	classes int
	edges   []map[byte]int32
	tags    [][]int
}

func newWordsBuilder() *wordsBuilder {
	return &wordsBuilder{classes: 1, edges: []map[byte]int32{{}}, tags: [][]int{nil}}
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// add adds a word with the tag that finding it gives.
func (b *wordsBuilder) add(word string, tag int) {
	state := int32(0)
	for i := range len(word) {
		c := lower(word[i])
		if b.class[c] == 0 {
			b.class[c] = byte(b.classes)
			b.classes++
		}
		to, ok := b.edges[state][b.class[c]]
		if !ok {
			to = int32(len(b.edges))
			b.edges, b.tags = append(b.edges, map[byte]int32{}), append(b.tags, nil)
			b.edges[state][b.class[c]] = to
		}
		state = to
	}
	b.tags[state] = append(b.tags[state], tag)
}

// build completes the edges: where a word breaks off, the longest word that may have begun within goes on.
func (b *wordsBuilder) build() *words {
	w := &words{class: b.class, next: make([][]int32, len(b.edges)), tags: b.tags}
	for c := byte('A'); c <= 'Z'; c++ {
		w.class[c] = w.class[lower(c)]
	}
	fallback := make([]int32, len(b.edges))
	queue := []int32{0}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		w.next[s] = make([]int32, b.classes)
		for c := 1; c < b.classes; c++ {
			back := int32(0)
			if s != 0 {
				back = w.next[fallback[s]][c]
			}
			to, ok := b.edges[s][byte(c)]
			if !ok {
				w.next[s][c] = back
				continue
			}
			w.next[s][c], fallback[to] = to, back
			w.tags[to] = append(w.tags[to], w.tags[back]...)
			queue = append(queue, to)
		}
	}
	return w
}

// each calls back for every word in the text, with its tag and where it ends, from the beginning to the end.
func (w *words) each(text []byte, found func(tag, end int)) {
	state := int32(0)
	for i, c := range text {
		state = w.next[state][w.class[c]]
		for _, tag := range w.tags[state] {
			found(tag, i+1)
		}
	}
}

// any reports whether one of the words is in the text.
func (w *words) any(text []byte) bool {
	state := int32(0)
	for _, c := range text {
		if state = w.next[state][w.class[c]]; len(w.tags[state]) > 0 {
			return true
		}
	}
	return false
}
