package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folder makes a module's folder of the files of a table.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLicenceOf(t *testing.T) {
	isc := "Copyright (c) 2020 Somebody\n\nPermission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, " +
		"provided that the above copyright notice and this permission notice appear in all copies.\n\nTHE SOFTWARE IS PROVIDED \"AS IS\" AND THE AUTHOR DISCLAIMS ALL WARRANTIES " +
		"WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, " +
		"INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER " +
		"TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.\n"
	apache, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files map[string]string
		ids   string
		texts int
	}{
		"one":        {map[string]string{"LICENSE": isc, "README": isc, "main.go": isc}, "ISC", 1},
		"two":        {map[string]string{"LICENSE.md": isc, "COPYING": string(apache), "NOTICE": "by us"}, "Apache-2.0 ISC", 3},
		"twice":      {map[string]string{"LICENSE": isc, "LICENSE-ISC": isc}, "ISC", 2},
		"documents":  {map[string]string{"LICENSE": isc, "LICENSE.docs": "whatever"}, "ISC", 1},
		"unknown":    {map[string]string{"LICENCE.txt": "Do what is right."}, "", 1},
		"one is not": {map[string]string{"LICENSE": isc, "COPYING": "Do what is right."}, "", 2},
		"too little": {map[string]string{"LICENSE": isc + strings.Repeat("But never on a Sunday, nor in winter. ", 50)}, "", 1},
	} {
		l, err := licenceOf(folder(t, c.files))
		if err != nil || strings.Join(l.ids, " ") != c.ids || len(l.texts) != c.texts {
			t.Errorf("%s: %q with %d texts, %v; want %q with %d", name, l.ids, len(l.texts), err, c.ids, c.texts)
		}
	}
	for name, files := range map[string]map[string]string{"none": {"README": isc}, "a notice alone": {"NOTICE": "by us"}} {
		if _, err := licenceOf(folder(t, files)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestCyclone(t *testing.T) {
	if c := (licence{ids: []string{"MIT"}}).cyclone(); len(c) != 1 || c[0].License.ID != "MIT" {
		t.Errorf("%+v", c)
	}
	if c := (licence{ids: []string{"Apache-2.0", "MIT"}}).cyclone(); len(c) != 1 || c[0].Expression != "Apache-2.0 AND MIT" || c[0].License != nil {
		t.Errorf("%+v", c)
	}
	c := (licence{texts: []text{{"LICENSE", "ours"}}}).cyclone()
	if len(c) != 1 || c[0].License.ID != "" || c[0].License.Name != "LICENSE" || c[0].License.Text.Content != base64.StdEncoding.EncodeToString([]byte("ours")) {
		t.Errorf("%+v", c)
	}
}
