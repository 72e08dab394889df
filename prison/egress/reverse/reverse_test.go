package reverse

import "testing"

func TestAddress(t *testing.T) {
	for name, want := range map[string]string{
		"2.0.0.127.in-addr.arpa.": "127.0.0.2", "9.1.168.192.IN-ADDR.arpa": "192.168.1.9", "168.192.in-addr.arpa.": "192.168.0.0", "10.in-addr.arpa.": "10.0.0.0",
		"a.9.1.168.192.in-addr.arpa.": "192.168.1.9", "0/25.2.0.10.in-addr.arpa.": "10.0.2.0", "1.2.3.4.10.in-addr.arpa.": "10.4.3.2", "8.8.8.8.in-addr.arpa.": "8.8.8.8",
		"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.e.f.ip6.arpa.": "fe80::1", "d.f.ip6.arpa.": "fd00::", "0.ip6.arpa.": "::",
		"in-addr.arpa.": "", "ip6.arpa.": "", "x.in-addr.arpa.": "", "x.ip6.arpa.": "", "256.in-addr.arpa.": "", "10.in-addr.arpa.test.": "", "1.2.0.192.test.": "", ".": "",
	} {
		got := Address(name)
		if text := got.String(); got.IsValid() && text != want || !got.IsValid() && want != "" {
			t.Errorf("%s: %s; want %q", name, text, want)
		}
	}
}
