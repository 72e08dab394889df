package airlock

import "testing"

// FuzzRecord lets a record hold anything: what is read is of this version, and is read again as it was.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"version":1,"id":"7f3a","branch":"refs/heads/x","phantom":{"uid":1879123456},"settings":{"a":"b"}}`))
	f.Add([]byte(`{"version":99}`))
	f.Add([]byte(`{"version":1,"branch":"\u0000refs/heads/café"}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		r, err := decode(content, "record.json")
		if err != nil {
			return
		}
		if r.Version != version {
			t.Errorf("version %d", r.Version)
		}
		written, err := encode(r)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := decode(written, "record.json"); err != nil || again.Branch != r.Branch || again.Top != r.Top {
			t.Errorf("%q: read as branch %q, top %q: %v", written, again.Branch, again.Top, err)
		}
	})
}
