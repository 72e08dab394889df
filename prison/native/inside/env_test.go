//go:build linux

package inside

import "testing"

func TestMergeEnv(t *testing.T) {
	got := mergeEnv([]string{"A=1", "B=2"}, []string{"A=3", "C=4"}, []string{"C=5"})
	want := []string{"A=3", "B=2", "C=5"}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("mergeEnv: %q", got)
	}
}
