package egress

import (
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	for name, want := range map[string]string{
		"files.test":                       "files.test",
		"FiLeS.TeSt":                       "files.test",
		"files.test.":                      "files.test",
		"bücher.test":                      "xn--bcher-kva.test",
		"xn--bcher-kva.test":               "xn--bcher-kva.test",
		"evil。test":                        "evil.test",  // ideographic full stop
		"\uff46iles.test":                  "files.test", // fullwidth
		"my_bucket.s3.test":                "my_bucket.s3.test",
		"1.test":                           "1.test",
		"localhost":                        "localhost",
		"files.test..":                     "",
		".files.test":                      "",
		"files..test":                      "",
		"":                                 "",
		".":                                "",
		"*":                                "",
		"files.test\x00.e.x":               "",
		"files.test\n":                     "",
		"files test":                       "",
		"a@files.test":                     "",
		"evil%2etest":                      "",
		"files.test\\evil":                 "",
		"files.test:80":                    "",
		"[::1]":                            "",
		"::1":                              "",
		"127.0.0.1":                        "",
		"127.1":                            "",
		"2130706433":                       "",
		"0x7f000001":                       "",
		"0x7f.1":                           "",
		"0177.0.0.01":                      "",
		"0x":                               "",
		"１２７.０.０.１":                        "", // fullwidth digits
		"-a.test":                          "",
		"xn--a.test":                       "", // not Punycode of anything
		strings.Repeat("a", 64) + ".test":  "",
		strings.Repeat("a.", 127) + "test": "",
		strings.Repeat("a", 63) + ".test":  strings.Repeat("a", 63) + ".test",
	} {
		got, err := Canonical(name)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", name, got, err, want)
		}
	}
}

// FuzzCanonical checks that a canonical name is its own canonical name, and has no character that ends or joins names elsewhere.
func FuzzCanonical(f *testing.F) {
	for _, name := range []string{"a.test", "BÜCHER.test.", "xn--bcher-kva.test", "a。b", "ß.test", "a\u200db.test", "127.1"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		once, err := Canonical(name)
		if err != nil {
			if once != "" {
				t.Errorf("%q is refused with %q", name, once)
			}
			return
		}
		if twice, err := Canonical(once); err != nil || twice != once {
			t.Errorf("%q: %q, then %q, %v", name, once, twice, err)
		}
		if strings.Trim(once, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" || len(once) > maxName {
			t.Errorf("%q: %q", name, once)
		}
	})
}
