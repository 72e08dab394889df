package ignore

// Limits are the limits of the paths with which a pattern is matched.
type Limits struct{ Bytes, Component, Slashes float64 }

// stepsMost is a number of steps that takes longer than anybody waits. Longer patterns are not read further.
const stepsMost = 1e18

// Steps returns an upper bound of the steps that git needs to match a line of a .gitignore file with one path.
//
// Git tries each place where a star can end, and for each of them each place of the next star (wildmatch.c). So the
// steps multiply: with a path of 60 folders, a pattern with twelve "**/" takes years. Git 2.41 and later skip many of
// these places, but double the steps with each "**/". A step is a byte of the pattern or of the path that git compares
// or skips. TestStepsAreGits counts them in a copy of git's algorithm.
func Steps(line string, limits Limits) float64 {
	text, ok := patternOf(line)
	if !ok {
		return 0
	}
	return AttributeSteps(text, limits)
}

// AttributeSteps is Steps for the pattern in a line of a .gitattributes file.
func AttributeSteps(pattern string, limits Limits) float64 {
	p, _, wild, ok := splitPattern(pattern)
	if !ok {
		return 0
	}
	if p.anyDepth {
		limits = Limits{limits.Component, limits.Component, 0}
	}
	s := search{limits: limits, before: map[float64]int{}, fixed: 1, steps: 2 * float64(len(pattern))}
	s.region.ways = 1
	for i := 0; i < len(wild) && s.steps < stepsMost; {
		t, n := parseGlobToken(wild, i)
		if n == 0 { // git gives up only when it gets here
			break
		}
		i += n
		s.token(t, float64(n), wild[i:])
	}
	return s.steps
}

// search is the part of a pattern that was read, and the places in a path that git tries for its stars.
type search struct {
	limits Limits
	fixed  float64         // the ways to lay the stars before the first "**/" over a path
	before map[float64]int // the regions before this one, counted by their ways in all of a path; 0: no star can vary
	region region
	steps  float64 // in the part that was read
	beyond bool    // it ends behind the component of its last star
}

// region is the part of a pattern after a "**/", or the part before the first.
type region struct {
	dirs  bool    // it is after a "**/"
	ways  float64 // to lay the stars of its components, without the last, over their components
	stars int     // in the last component
	loose bool    // the last star ends where that component ends, so that all stars before it can vary
}

// token reads one token of some bytes. rest is the pattern after it.
func (s *search) token(t globToken, bytes float64, rest string) {
	r := &s.region
	switch {
	case t.kind == star && (rest == "" || rest[0] == '/'): // git looks for the end of the component
		s.steps += s.places()
		r.loose = true
	case t.kind == star:
		r.stars++
		s.steps += s.places() * comparisons(rest)
		s.beyond = false
	case t.kind == deep && rest == "":
	case t.kind == deep, t.kind == dirs:
		s.steps += s.places() * (s.limits.Bytes + 1) * (2 + comparisons("/"+rest))
		s.end()
	case t.kind == literal && t.char == '/':
		if r.stars > 0 && !r.loose {
			r.stars-- // its end is given by the component's end
		}
		r.ways, r.stars, r.loose = r.waysHere(s.limits), 0, false
		s.beyond = true
	}
	if s.beyond {
		s.steps += s.places() * (1 + bytes)
	}
}

func (r *region) waysHere(l Limits) float64 {
	return r.ways * choose(l.Component+float64(r.stars), r.stars)
}

// end ends the region at a "**/".
func (s *search) end() {
	if here := s.region.waysHere(s.limits); !s.region.dirs {
		s.fixed = here
	} else {
		s.before[s.inPath(here)]++
	}
	s.region, s.beyond = region{dirs: true, ways: 1}, false
}

// inPath returns the ways of a region in all components of a path together, or 0 if there is one way in each. The ways
// grow faster than the length of a component, so there are most of them if the components are as long as possible.
func (s *search) inPath(ways float64) float64 {
	if ways == 1 {
		return 0
	}
	return ways*(s.limits.Bytes/s.limits.Component+1) + s.limits.Slashes + 1
}

// places returns an upper bound of the number of ways in which the stars that were read can be laid over one path.
func (s *search) places() float64 {
	here := s.region.waysHere(s.limits)
	if !s.region.dirs {
		return here
	}
	ways, now := s.fixed, s.inPath(here)
	for total, n := range s.before {
		if total == now {
			n++
			now = -1
		}
		ways *= s.laid(total, n)
	}
	if now >= 0 {
		ways *= s.laid(now, 1)
	}
	return ways
}

// laid returns the ways of n regions which have the same number of ways in all of a path.
func (s *search) laid(total float64, n int) float64 {
	if total == 0 {
		return choose(s.limits.Slashes+1+float64(n), n) // several may end at the same slash
	}
	ways := 1.0
	for i := range n {
		ways *= total / float64(i+1) // each is behind the one before
	}
	return ways
}

// comparisons returns how often git compares a byte of the path with the text up to the next star, if it tries each
// byte as the beginning. The text can begin again within itself only at a byte that can be equal to its first.
func comparisons(text string) float64 {
	n, first := 2.0, byte(0)
	for i := 0; i < len(text); {
		t, length := parseGlobToken(text, i)
		if length == 0 || t.kind != literal && t.kind != class {
			break
		}
		if i == 0 && t.kind == literal {
			first = t.char | 0x20 // core.ignoreCase
		}
		switch {
		case t.kind == class:
			n += 1 + float64(length) // git reads all of it for each comparison
		case first == 0 || t.char|0x20 == first:
			n++
		}
		i += length
	}
	return n
}

// choose returns the binomial coefficient "n choose k".
func choose(n float64, k int) float64 {
	product := 1.0
	for i := range k {
		product *= (n - float64(i)) / float64(i+1)
	}
	return product
}
