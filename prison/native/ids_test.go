//go:build linux

package native

import "testing"

func TestFreeRange(t *testing.T) {
	for _, c := range []struct {
		taken []idRange
		want  int
	}{
		{nil, 100000},
		{[]idRange{{100000, 65536}}, 165536},
		{[]idRange{{165536, 65536}, {100000, 65536}}, 231072},
		{[]idRange{{120000, 10}}, 120010},
		{[]idRange{{1000, 10}}, 100000},
	} {
		if got := freeRange(c.taken); got != c.want {
			t.Errorf("freeRange(%v) = %d, want %d", c.taken, got, c.want)
		}
	}
}
