package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// rawCommit is a parsed commit object, without decoding of its values.
type rawCommit struct {
	tree              string
	parents           []string
	author, committer string
	encoding          string
	other             []string // other headers
	message           string
}

func parseCommit(content string) (c rawCommit) {
	header, message, _ := strings.Cut(content, "\n\n")
	c.message = message
	for line := range strings.Lines(header) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch key {
		case "tree":
			c.tree = value
		case "parent":
			c.parents = append(c.parents, value)
		case "author":
			c.author = value
		case "committer":
			c.committer = value
		case "encoding":
			c.encoding = value
		default:
			c.other = append(c.other, line)
		}
	}
	return c
}

// splitAuthor splits "Name <mail> 1234 +0100" before the time.
func splitAuthor(ident string) (who, when string) {
	i := strings.LastIndex(ident, "> ")
	if i < 0 {
		return ident, ""
	}
	return ident[:i+1], ident[i+2:]
}

// gitOutput runs git in the script's folder.
func gitOutput(ts *testscript.TestScript, stdin string, args ...string) string {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = ts.MkAbs("."), environ(ts), strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		ts.Fatalf("%q: %v\n%s%s", args, err, out, &stderr)
	}
	return string(out)
}

// objects parses the output of git cat-file --batch.
func objects(ts *testscript.TestScript, rest, kind string) map[string]string {
	found := map[string]string{}
	for rest != "" {
		header, after, _ := strings.Cut(rest, "\n")
		fields := strings.Fields(header)
		if len(fields) != 3 || fields[1] != kind {
			ts.Fatalf("cat-file: %q", header)
		}
		size, err := strconv.Atoi(fields[2])
		ts.Check(err)
		found[fields[0]] = after[:size]
		rest = after[size+1:]
	}
	return found
}

// noteKeys lists the keys of version 1, in their order. "Supersedes" may follow several times.
var noteKeys = []string{"Version", "Commit", "Session", "Inner-Commit", "Inner-Author", "Base", "Backend", "Isolation", "Tree", "Policy", "Landed-At"}

// noteValues returns patterns for the values of some keys. This binary is also the program, which starts thousands of times and needs none.
var noteValues = sync.OnceValue(func() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"Version":   regexp.MustCompile(`^1$`),
		"Session":   regexp.MustCompile(`^\d{8}T\d{6}Z-[0-9a-f]{4}$`),
		"Backend":   regexp.MustCompile(`^(native|docker)$`),
		"Isolation": regexp.MustCompile(`^runtime=\S+ network=none uid=\d+$`),
		"Tree":      regexp.MustCompile(`^exact$`),
		"Policy":    regexp.MustCompile(`^(clean|(flagged|accepted) [a-z-]+(, [a-z-]+)*(; flagged [a-z-]+(, [a-z-]+)*)?)$`),
		"Landed-At": regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`),
	}
})

// readNotes checks the form of the commits' notes and returns their values.
func readNotes(ts *testscript.TestScript, ids []string) map[string]map[string]string {
	texts, notes := notesOf(ts), map[string]map[string]string{}
	// git reads the trailers of all of them at once: a program for each would take a third of a script's time.
	dir, err := os.MkdirTemp(ts.Getenv("WORK"), "notes")
	ts.Check(err)
	defer os.RemoveAll(dir)
	var files, bodies []string
	for _, id := range ids {
		subject, body, _ := strings.Cut(texts[id], "\n\n")
		if subject != "landed by airlock "+ts.Getenv("ID") {
			ts.Fatalf("note of %s: subject %q", id, subject)
		}
		files, bodies = append(files, filepath.Join(dir, id)), append(bodies, body)
		ts.Check(os.WriteFile(files[len(files)-1], []byte(texts[id]), 0o600))
		notes[id] = valuesOf(ts, id, body)
	}
	if len(ids) == 0 {
		return notes
	}
	if parsed := gitOutput(ts, "", append([]string{"interpret-trailers", "--parse"}, files...)...); parsed != strings.Join(bodies, "") {
		ts.Fatalf("git reads the trailers %q from the notes %q", parsed, bodies)
	}
	return notes
}

// notesOf returns the notes of all commits.
func notesOf(ts *testscript.TestScript) map[string]string {
	var blobs strings.Builder
	blobOf := map[string]string{}
	for line := range strings.Lines(gitOutput(ts, "", "notes", "--ref=airlock", "list")) {
		blob, commit, _ := strings.Cut(strings.TrimSpace(line), " ")
		blobOf[commit] = blob
		fmt.Fprintln(&blobs, blob)
	}
	contents, texts := objects(ts, gitOutput(ts, blobs.String(), "cat-file", "--batch"), "blob"), map[string]string{}
	for commit, blob := range blobOf {
		texts[commit] = contents[blob]
	}
	return texts
}

// valuesOf checks the lines of a note and returns their values by their keys.
func valuesOf(ts *testscript.TestScript, id, body string) map[string]string {
	values := map[string]string{}
	for i, line := range strings.Split(strings.TrimSuffix(body, "\n"), "\n") {
		key, value, _ := strings.Cut(strings.TrimPrefix(line, "Airlock-"), ": ")
		if i < len(noteKeys) && key != noteKeys[i] || i >= len(noteKeys) && key != "Supersedes" {
			ts.Fatalf("note of %s: key %d is %q", id, i, key)
		}
		if form := noteValues()[key]; form != nil && !form.MatchString(value) {
			ts.Fatalf("note of %s: %s", id, line)
		}
		values[key] = strings.TrimSpace(values[key] + " " + value)
	}
	if values["Commit"] != id || values["Base"] != ts.Getenv("BASE") {
		ts.Fatalf("note of %s: %q", id, body)
	}
	return values
}

// exact [N] compares each landed commit with the inner commit that its note names: tree, message, encoding and author date byte for
// byte, the parents' images, and the user's name as the only name. Every commit of the inner main must have landed. N is their
// number.
func cmdExact(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) > 1, "exact [N]")
	landed := strings.Fields(gitOutput(ts, "", "rev-list", "--reverse", "--topo-order", ts.Getenv("BASE")+"..refs/heads/"+ts.Getenv("BRANCH")))
	if len(args) == 1 && strconv.Itoa(len(landed)) != args[0] {
		ts.Fatalf("%d commits have landed, not %s", len(landed), args[0])
	}
	images, notes := map[string]string{}, readNotes(ts, landed)
	var ofNotes strings.Builder
	for _, id := range landed {
		images[notes[id]["Inner-Commit"]] = id
		fmt.Fprintln(&ofNotes, notes[id]["Inner-Commit"])
	}
	// One command: an engine takes longer to start one than these take.
	inner := gitOutput(ts, ofNotes.String(), "airlock", "visit", "--", "sh", "-euc",
		"git rev-list --max-parents=0 refs/heads/main --; echo; git rev-list refs/heads/main --; echo; git cat-file --batch")
	roots, rest, _ := strings.Cut(inner, "\n\n")
	main, contents, _ := strings.Cut(rest, "\n\n")
	for _, id := range strings.Fields(roots) {
		if images[id] == "" {
			images[id] = ts.Getenv("BASE") // the inner root; the agent made the others
		}
	}
	for _, id := range strings.Fields(main) {
		if images[id] == "" {
			ts.Fatalf("the inner commit %s has not landed", id)
		}
	}
	outside := objects(ts, gitOutput(ts, strings.Join(landed, "\n")+"\n", "cat-file", "--batch"), "commit")
	inside := objects(ts, contents, "commit")
	for _, id := range landed {
		of := notes[id]["Inner-Commit"]
		if wrong := compare(ts, parseCommit(outside[id]), parseCommit(inside[of]), images, notes[id]); wrong != "" {
			ts.Fatalf("%s landed as %s: %s", of, id, wrong)
		}
	}
	cmdFsck(ts, false, nil)
}

// compare returns the difference between a landed commit and the expected one.
func compare(ts *testscript.TestScript, outer, inner rawCommit, images, note map[string]string) string {
	user := ts.Getenv("LANDED_BY")
	if user == "" {
		user = "Ursula User <ursula@host.example>"
	}
	ghost, written := splitAuthor(inner.author)
	author, landedDate := splitAuthor(outer.author)
	committer, _ := splitAuthor(outer.committer)
	var parents []string
	for _, p := range inner.parents {
		if image := images[p]; !slices.Contains(parents, image) {
			parents = append(parents, image)
		}
	}
	if note["Supersedes"] != "" {
		parents, outer.parents = parents[1:], outer.parents[1:] // the first parent is the previously landed commit
	}
	switch {
	case outer.tree != inner.tree:
		return fmt.Sprintf("tree %s, not %s", outer.tree, inner.tree)
	case outer.message != inner.message:
		return fmt.Sprintf("message %q, not %q", outer.message, inner.message)
	case outer.encoding != inner.encoding:
		return fmt.Sprintf("encoding %q, not %q", outer.encoding, inner.encoding)
	case landedDate != written:
		return fmt.Sprintf("author date %q, not %q", landedDate, written)
	case author != user || committer != user:
		return fmt.Sprintf("author %q, committer %q", author, committer)
	case !slices.Equal(outer.parents, parents):
		return fmt.Sprintf("parents %q, not %q", outer.parents, parents)
	case len(outer.other) > 0:
		return fmt.Sprintf("headers %q", outer.other)
	case note["Inner-Author"] != ghost:
		return fmt.Sprintf("the note says author %q, not %q", note["Inner-Author"], ghost)
	}
	return ""
}
