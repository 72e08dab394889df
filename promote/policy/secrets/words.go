package secrets

// words finds which of many words are in a text, in one pass whatever their number, and ignores the case of ASCII
// letters. It is the automaton of Aho and Corasick. A state is the offset of its row in the table, so that a byte
// costs two loads.
type words struct {
	class   [256]byte // class of each byte; 0 for bytes in no word
	classes int
	next    []int32 // the next state, by state and class; its complement if words end in the next state
	tags    [][]int // tags of the words that end in a state, by row number
}

type wordsBuilder struct {
	class   [256]byte
	classes int
	edges   [][]edge // of each state, few
	tags    [][]int
}

// edge leads to another state by one class of bytes.
type edge struct {
	class byte
	to    int32
}

func newWordsBuilder() *wordsBuilder {
	return &wordsBuilder{classes: 1, edges: [][]edge{nil}, tags: [][]int{nil}}
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// add adds a word. tag is returned when the word is found.
func (b *wordsBuilder) add(word string, tag int) {
	state := int32(0)
	for i := range len(word) {
		c := lower(word[i])
		if b.class[c] == 0 {
			b.class[c] = byte(b.classes)
			b.classes++
		}
		to := int32(-1)
		for _, e := range b.edges[state] {
			if e.class == b.class[c] {
				to = e.to
			}
		}
		if to < 0 {
			to = int32(len(b.edges))
			b.edges, b.tags = append(b.edges, nil), append(b.tags, nil)
			b.edges[state] = append(b.edges[state], edge{b.class[c], to})
		}
		state = to
	}
	b.tags[state] = append(b.tags[state], tag)
}

// build completes the edges. Where a word does not continue, the search continues with the longest suffix that is the
// beginning of a word.
func (b *wordsBuilder) build() *words {
	w := &words{class: b.class, classes: b.classes, next: make([]int32, len(b.edges)*b.classes), tags: b.tags}
	for c := byte('A'); c <= 'Z'; c++ {
		w.class[c] = w.class[lower(c)]
	}
	row := func(state int32) []int32 { return w.next[int(state)*b.classes:][:b.classes] }
	fallback := make([]int32, len(b.edges))
	for queue := []int32{0}; len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		if s != 0 {
			copy(row(s), row(fallback[s])) // of fewer letters, so complete
		}
		for _, e := range b.edges[s] {
			back := row(s)[e.class]
			row(s)[e.class], fallback[e.to] = e.to, back
			w.tags[e.to] = append(w.tags[e.to], w.tags[back]...)
			queue = append(queue, e.to)
		}
	}
	for i, state := range w.next {
		w.next[i] = state * int32(b.classes)
		if len(w.tags[state]) > 0 {
			w.next[i] = ^w.next[i]
		}
	}
	return w
}

// each calls found for every word in the text in order, with its tag and its end.
func (w *words) each(text []byte, found func(tag, end int)) {
	state := int32(0)
	for i, c := range text {
		if state = w.next[state+int32(w.class[c])]; state < 0 {
			state = ^state
			for _, tag := range w.tags[int(state)/w.classes] {
				found(tag, i+1)
			}
		}
	}
}

// any reports whether one of the words is in the text.
func (w *words) any(text []byte) bool {
	state := int32(0)
	for _, c := range text {
		if state = w.next[state+int32(w.class[c])]; state < 0 {
			return true
		}
	}
	return false
}
