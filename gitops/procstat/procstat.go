// Package procstat reads /proc/PID/stat.
package procstat

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// Fields returns the fields of proc_pid_stat(5) from the third on, which is the state. The second field is the name in parentheses. The name
// may contain anything, so the fields are counted from the last parenthesis.
func Fields(pid int) ([]string, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])), err
}
