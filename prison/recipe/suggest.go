package recipe

// Nearest returns the candidate that is the fewest changes away from a mistyped word. It returns an empty string if no candidate is close.
func Nearest(word string, candidates []string) string {
	best, within := "", 1+len(word)/4
	for _, c := range candidates {
		if d := distance(word, c); d <= within {
			best, within = c, d-1
		}
	}
	return best
}

// distance counts the letters to insert, remove, replace or swap with a neighbour to turn a into b.
func distance(a, b string) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
