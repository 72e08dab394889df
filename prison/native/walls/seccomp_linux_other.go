//go:build linux && !amd64 && !arm64

package walls

import (
	"errors"
	"os"

	"github.com/git-airlock/git-airlock/prison"
)

// filterMissing is the reason why this machine has no filter.
const filterMissing = "the system call filter is not written for this processor"

func filterSize() int { return 0 }

func filterDigest() string { return "" }

// FilterCalls reports that nothing is filtered.
func FilterCalls() ([]prison.Weakness, error) {
	return []prison.Weakness{{Kind: prison.NoCallFilter, Text: filterMissing}}, nil
}

// FilterNetwork filters nothing on this processor.
func FilterNetwork() error { return nil }

// ListenToPrograms fails on this processor.
func ListenToPrograms() (*os.File, error) { return nil, CheckPrograms() }

// ProgramFilter returns nothing on this processor.
func ProgramFilter() (filter []byte, flags uint32) { return nil, 0 }

// CheckPrograms returns an error: there is no filter for this processor.
func CheckPrograms() error { return errors.New(filterMissing) }
