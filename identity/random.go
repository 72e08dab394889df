package identity

import (
	"crypto/rand"
	"math/big"
)

// random returns a number from 0 to n-1. All numbers are equally likely. It is this package's only source of
// randomness.
func random(n int) int {
	r, err := rand.Int(rand.Reader, big.NewInt(int64(n)))
	if err != nil {
		panic(err) // crypto/rand's reader never returns an error
	}
	return int(r.Int64())
}

// one returns an element of the list. All elements are equally likely.
func one(list []string) string { return list[random(len(list))] }
