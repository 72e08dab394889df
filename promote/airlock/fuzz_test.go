package airlock

import "testing"

// FuzzRecord decodes records with any content: a record that can be read has this version, and stays the same when it
// is written and read again.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"version":1,"id":"7f3a","branch":"refs/heads/x","phantom":{"uid":1879123456},"settings":{"a":"b"}}`))
	f.Add([]byte(`{"version":99}`))
	f.Add([]byte(`{"version":1,"branch":"\u0000refs/heads/café"}`))
	f.Add([]byte(`{"version":1,"worktree":"\u0000café","top":"\u0000/ÿ"}`))
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
		if again, err := decode(written, "record.json"); err != nil || again.Branch != r.Branch || again.Worktree != r.Worktree || again.Top != r.Top {
			t.Errorf("%q: read as branch %q, worktree %q, top %q: %v", written, again.Branch, again.Worktree, again.Top, err)
		}
	})
}
