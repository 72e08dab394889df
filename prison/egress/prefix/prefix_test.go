package prefix

import "testing"

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.5": "10.0.0.5/32", "10.1.2.3/8": "10.0.0.0/8", "[fd00::5]": "fd00::5/128", "[fd00::5/16]": "fd00::/16",
		"fd00::5": "", "[10.0.0.5]": "", "[fd00::5": "", "[::ffff:10.0.0.5]": "", "[fe80::1%eth0]": "", "10.0.0.5/33": "", "a.test": "", "": "",
	} {
		if got, ok := Parse(text); ok != (want != "") || ok && got.String() != want {
			t.Errorf("%q is %v, %v", text, got, ok)
		}
	}
}

func TestParsePort(t *testing.T) {
	for text, want := range map[string]uint16{"1": 1, "443": 443, "65535": 65535, "0": 0, "65536": 0, "+1": 0, "01": 0, "": 0, "x": 0} {
		if got, err := ParsePort(text); got != want || (err == nil) != (want != 0) {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
}
