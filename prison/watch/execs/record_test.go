package execs

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRead checks that later lines replace earlier ones, across a rotation, and that broken lines are skipped.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	f, last, err := openFile(dir)
	if err != nil || last != 0 {
		t.Fatal(last, err)
	}
	zero := 0
	if err := f.append([]Record{{Seq: 2, Path: "b"}, {Seq: 1, Path: "a"}}); err != nil {
		t.Fatal(err)
	}
	f.size = maxFile // rotates after the next record
	if err := f.append([]Record{{Seq: 3, Path: "c"}}); err != nil {
		t.Fatal(err)
	}
	if err := f.append([]Record{{Seq: 1, Path: "a", Exit: &zero}}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.f.WriteString(`{"seq":9,"path":"half`); err != nil {
		t.Fatal(err)
	}
	f, last, err = openFile(dir)
	if err != nil || last != 3 {
		t.Fatal(last, err)
	}
	if err := f.append([]Record{{Seq: 4, Path: "d"}}); err != nil {
		t.Fatal(err)
	}
	all, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range all {
		got = append(got, r.Path)
	}
	if strings.Join(got, "") != "abcd" || all[0].Exit == nil {
		t.Errorf("read %+v", all)
	}
	if info, err := os.Stat(filepath.Join(dir, FileName)); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestLine checks the form of a line, on which other programs depend.
func TestLine(t *testing.T) {
	dir := t.TempDir()
	f, _, err := openFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	exe, exit, ms := "/workspace/t", 0, int64(12)
	r := Record{
		Time: time.Date(2026, 11, 25, 15, 0, 0, 5e6, time.UTC), Seq: 1, PID: 7, PPID: 3, CWD: "/workspace",
		Path: "./t", Argv: []string{"./t", "<&>"}, Exe: &exe, Exit: &exit, MS: &ms, Top: true,
	}
	if err := f.append([]Record{r}); err != nil {
		t.Fatal(err)
	}
	const want = `{"t":"2026-11-25T15:00:00.005Z","seq":1,"pid":7,"ppid":3,"cwd":"/workspace","path":"./t","argv":["./t","<&>"],"exe":"/workspace/t","exit":0,"ms":12,"top":true,"deny":null,"disputed":false,"cut":false}` + "\n"
	if got, err := os.ReadFile(filepath.Join(dir, FileName)); err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

// TestDeniedStay checks that programs that ran push no refusal out of the record, however much room their arguments need.
func TestDeniedStay(t *testing.T) {
	dir := t.TempDir()
	f, _, err := openFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	rule := "*/whoami"
	ran := Record{Seq: 2, Argv: []string{"true", strings.Repeat("\x01", maxArguments), "rest"}}
	for _, r := range []Record{{Seq: 1, Path: "/usr/bin/whoami", Deny: &rule}, ran, {Seq: 3}, {Seq: 4}} {
		if err := f.append([]Record{r}); err != nil {
			t.Fatal(err)
		}
		f.size = maxFile // rotates after the next record
	}
	all, err := Read(dir)
	if err != nil || len(all) != 3 || all[0].Seq != 1 || all[0].Deny == nil || all[2].Seq != 4 {
		t.Errorf("read %d records, %v", len(all), err)
	}
	if last, err := Newest(dir); err != nil || last != 4 {
		t.Errorf("newest %d, %v", last, err)
	}
	line := ran.appendLine(nil)
	var read Record
	if err := json.Unmarshal(line, &read); err != nil || !read.Cut || len(line) > maxArguments+maxPath || len(line) < maxArguments-maxPath {
		t.Errorf("a line of %d bytes, cut %v, %v", len(line), read.Cut, err)
	}
	if len(read.Argv) != 2 || !strings.HasPrefix(ran.Argv[1], read.Argv[1]) {
		t.Errorf("%d arguments", len(read.Argv))
	}
}

// TestLineIsJSON compares lines with those of package json.
func TestLineIsJSON(t *testing.T) {
	words := []string{"", "a b", "\"", "\\", "<&>", "\x00\x1f\x7f", "\u2028", "\xff\xfe", "日本", "\t\n"}
	exit, ms := -1, int64(1<<40)
	for i := range 1 << 10 {
		pick := func(n int) *string { return &words[(i>>n+i)%len(words)] }
		r := Record{Time: time.Unix(0, int64(i)*1e6).UTC(), Seq: 1<<64 - 1, PID: i, PPID: -i, CWD: *pick(0), Path: *pick(1), Exe: pick(2), Deny: pick(3), Top: i%2 > 0, Disputed: i%3 > 0, Cut: i%5 > 0}
		switch i % 4 {
		case 0:
			r.Argv, r.Exe = words, nil
		case 1:
			r.Argv, r.Exit = []string{}, &exit
		case 2:
			r.Argv, r.MS, r.Deny = []string{*pick(4)}, &ms, nil
		}
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		e.Encode(r)
		if got := string(r.appendLine(nil)); got != want.String() {
			t.Fatalf("%s, want %s", got, want.String())
		}
	}
}

// TestCallMatchesProgram compares the calls of a process with the program and the arguments that the kernel gave it.
func TestCallMatchesProgram(t *testing.T) {
	words := strings.Fields
	for _, c := range []struct {
		name string
		call call
		got  given
		want bool
	}{
		{"a program", call{path: "./t", argv: words("t a")}, given{path: "./t", argv: words("t a")}, true},
		{"another argument", call{path: "./t", argv: words("t a")}, given{path: "./t", argv: words("t b")}, false},
		{"one more", call{path: "./t", argv: words("t a")}, given{path: "./t", argv: words("t a b")}, false},
		{"another path", call{path: "./t", argv: words("t a")}, given{path: "./u", argv: words("t a")}, false},
		{"no arguments", call{path: "./t"}, given{path: "./t", argv: []string{""}}, true},
		{"a script", call{path: "./t", argv: words("t a")}, given{path: "./t", argv: words("sh -e ./t a")}, true},
		{"a script of a script", call{path: "./t", argv: words("t a")}, given{path: "./t", argv: words("sh ./u ./t a")}, true},
		{"a script without arguments", call{path: "./t"}, given{path: "./t", argv: words("sh ./t")}, true},
		{"another script", call{path: "./t", argv: words("t a")}, given{path: "./t", argv: words("sh ./u a")}, false},
		{"a helper that keeps the name", call{path: "./t", argv: words("t a")}, given{path: "./t", argv: words("qemu ./t t a")}, true},
		{"cut", call{path: "./t", argv: words("t abc"), cut: true}, given{path: "./t", argv: words("t abcdef"), cut: true}, true},
		{"cut and another", call{path: "./t", argv: words("t abc"), cut: true}, given{path: "./t", argv: words("t xbcdef"), cut: true}, false},
		{"a cut script", call{path: "./t", argv: words("t abc"), cut: true}, given{path: "./t", argv: words("sh ./t abcdef"), cut: true}, true},
	} {
		if got := c.call.gave(c.got); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
