package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

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

// gitOutput runs git in the script's folder, in the prison or outside.
func gitOutput(ts *testscript.TestScript, inside bool, stdin string, args ...string) string {
	argv := append([]string{"git"}, args...)
	if inside {
		argv = append([]string{"git", "airlock", "visit", "--"}, argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin = ts.MkAbs("."), environ(ts), strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		ts.Fatalf("%q: %v\n%s%s", argv, err, out, &stderr)
	}
	return string(out)
}

// commits reads commit objects.
func commits(ts *testscript.TestScript, inside bool, ids []string) map[string]rawCommit {
	found := map[string]rawCommit{}
	rest := gitOutput(ts, inside, strings.Join(ids, "\n")+"\n", "cat-file", "--batch")
	for rest != "" {
		header, after, _ := strings.Cut(rest, "\n")
		fields := strings.Fields(header)
		if len(fields) != 3 || fields[1] != "commit" {
			ts.Fatalf("cat-file: %q", header)
		}
		size, err := strconv.Atoi(fields[2])
		ts.Check(err)
		found[fields[0]] = parseCommit(after[:size])
		rest = after[size+1:]
	}
	return found
}

// noteKeys lists the keys of version 1, in their order. "Supersedes" may follow several times.
var noteKeys = []string{"Version", "Commit", "Session", "Inner-Commit", "Inner-Author", "Base", "Backend", "Isolation", "Tree", "Policy", "Landed-At"}

// noteValues has patterns for the values of some keys.
var noteValues = map[string]*regexp.Regexp{
	"Version":   regexp.MustCompile(`^1$`),
	"Session":   regexp.MustCompile(`^\d{8}T\d{6}Z-[0-9a-f]{4}$`),
	"Backend":   regexp.MustCompile(`^(native|docker)$`),
	"Isolation": regexp.MustCompile(`^runtime=\S+ network=none uid=\d+$`),
	"Tree":      regexp.MustCompile(`^exact$`),
	"Policy":    regexp.MustCompile(`^(clean|(flagged|accepted) [a-z-]+(, [a-z-]+)*(; flagged [a-z-]+(, [a-z-]+)*)?)$`),
	"Landed-At": regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`),
}

// readNote checks the form of a commit's note and returns its values.
func readNote(ts *testscript.TestScript, id string) map[string]string {
	text := gitOutput(ts, false, "", "notes", "--ref=airlock", "show", id)
	subject, body, _ := strings.Cut(text, "\n\n")
	if subject != "landed by airlock "+ts.Getenv("ID") {
		ts.Fatalf("note of %s: subject %q", id, subject)
	}
	if parsed := gitOutput(ts, false, text, "interpret-trailers", "--parse"); parsed != body {
		ts.Fatalf("note of %s: git reads the trailers %q from %q", id, parsed, body)
	}
	values := map[string]string{}
	for i, line := range strings.Split(strings.TrimSuffix(body, "\n"), "\n") {
		key, value, _ := strings.Cut(strings.TrimPrefix(line, "Airlock-"), ": ")
		if i < len(noteKeys) && key != noteKeys[i] || i >= len(noteKeys) && key != "Supersedes" {
			ts.Fatalf("note of %s: key %d is %q", id, i, key)
		}
		if form := noteValues[key]; form != nil && !form.MatchString(value) {
			ts.Fatalf("note of %s: %s", id, line)
		}
		values[key] = strings.TrimSpace(values[key] + " " + value)
	}
	if values["Commit"] != id || values["Base"] != ts.Getenv("BASE") {
		ts.Fatalf("note of %s: %q", id, text)
	}
	return values
}

// exact [N] compares each landed commit with the inner commit that its note names: tree, message, encoding and author date byte for
// byte, the parents' images, and the user's name as the only name. Every commit of the inner main must have landed. N is their
// number.
func cmdExact(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) > 1, "exact [N]")
	landed := strings.Fields(gitOutput(ts, false, "", "rev-list", "--reverse", "--topo-order", ts.Getenv("BASE")+"..refs/heads/"+ts.Getenv("BRANCH")))
	if len(args) == 1 && strconv.Itoa(len(landed)) != args[0] {
		ts.Fatalf("%d commits have landed, not %s", len(landed), args[0])
	}
	images := map[string]string{}
	notes := map[string]map[string]string{}
	var inner []string
	for _, id := range landed {
		notes[id] = readNote(ts, id)
		inner = append(inner, notes[id]["Inner-Commit"])
		images[notes[id]["Inner-Commit"]] = id
	}
	for _, id := range strings.Fields(gitOutput(ts, true, "", "rev-list", "--max-parents=0", "refs/heads/main", "--")) {
		if images[id] == "" {
			images[id] = ts.Getenv("BASE") // the inner root; the agent made the others
		}
	}
	for _, id := range strings.Fields(gitOutput(ts, true, "", "rev-list", "refs/heads/main", "--")) {
		if images[id] == "" {
			ts.Fatalf("the inner commit %s has not landed", id)
		}
	}
	outside, inside := commits(ts, false, landed), commits(ts, true, inner)
	for i, id := range landed {
		if wrong := compare(ts, outside[id], inside[inner[i]], images, notes[id]); wrong != "" {
			ts.Fatalf("%s landed as %s: %s", inner[i], id, wrong)
		}
	}
	gitOutput(ts, false, "", "fsck", "--no-progress", "--no-dangling", "--strict")
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
