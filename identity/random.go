package identity

import (
	"crypto/rand"
	"math/big"
)

// random returns a number from 0 to n-1, each equally likely. It is this package's only source of chance.
func random(n int) int {
	r, err := rand.Int(rand.Reader, big.NewInt(int64(n)))
	if err != nil {
		panic(err) // crypto/rand's reader never returns an error
	}
	return int(r.Int64())
}

// one returns one of the list, each equally likely.
func one(list []string) string { return list[random(len(list))] }
