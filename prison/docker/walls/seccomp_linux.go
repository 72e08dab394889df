package walls

import (
	"encoding/json"

	"github.com/moby/profiles/seccomp"
)

// defaultProfile returns Docker's own filter of system calls.
func defaultProfile() ([]byte, error) { return json.Marshal(seccomp.DefaultProfile()) }
