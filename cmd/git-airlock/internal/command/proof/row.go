package proof

import (
	"fmt"
	"io"
	"strings"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/evidence"
)

// row is a commit with its verdict.
type row struct {
	gitops.Noted
	verdict evidence.Verdict
	base    baseRelation // empty for a statement about this commit, and without one
	ignored bool         // it has no evidence, and need not have any
}

// word returns the verdict in one word.
func (r row) word() string {
	switch {
	case r.verdict.Verified():
		return "verified"
	case r.ignored:
		return "none"
	case r.verdict.Missing():
		return "missing"
	}
	return "failed"
}

// print prints the commit, and a line for each reason why it is not verified. All texts of a statement may come from a stranger.
func (r row) print(out io.Writer, p ui.Paint) error {
	word := fmt.Sprintf("%-8s", r.word())
	switch r.word() {
	case "verified":
		word = p.Green(word)
	case "failed":
		word = p.Red(word)
	default:
		word = p.Yellow(word)
	}
	if _, err := fmt.Fprintf(out, "%s %s %s%s\n", word, p.Yellow(fmt.Sprintf("%.10s", r.ID)), gitops.Text(r.Subject), r.about()); err != nil {
		return err
	}
	if r.ignored {
		return nil
	}
	for _, fault := range r.verdict.Faults {
		if _, err := fmt.Fprintf(out, "         %s\n", gitops.Text(fault.Error())); err != nil {
			return err
		}
	}
	return nil
}

// about returns the facts of the statement, in brackets. A statement that a tree or a patch-id found is about another commit.
func (r row) about() string {
	v := r.verdict
	if v.By == "" {
		return ""
	}
	s := v.Statement.Predicate
	facts := []string{"by " + v.By, string(v.Level)}
	if v.Who != "" {
		facts[1] += " " + v.Who
	}
	facts = append(facts, s.Prison.Backend, "network "+s.Prison.Network)
	if s.Landed != nil {
		tree := s.Landed.Tree
		if v.By == evidence.ByPatch {
			tree = "another tree"
		}
		if r.aboutOther() {
			facts[0] += fmt.Sprintf(" of %.12s", v.Statement.Commit())
		}
		facts = append(append(facts, tree), r.base.facts()...)
		facts = append(facts, "gate "+s.Landed.Policy)
		for _, by := range s.Landed.Reviewers {
			facts = append(facts, "approved by "+by.By)
		}
	}
	return gitops.Text(" (" + strings.Join(facts, ", ") + ")").String()
}

// document is version 1 of verify --json.
type document struct {
	Version  int              `json:"version"`
	Verified bool             `json:"verified"`
	Commits  []commitDocument `json:"commits"`
}

// commitDocument is a commit in the document. Its texts are escaped.
type commitDocument struct {
	Commit  gitops.OID `json:"commit"`
	Tree    gitops.OID `json:"tree"`
	Subject string     `json:"subject"`
	Result  string     `json:"result"` // verified, failed, missing, or none for one that need not have evidence
	By      *string    `json:"by"`     // commit, tree or patch-id; null without a statement
	Of      *string    `json:"of"`     // the commit that the statement is about; null without a statement
	Base    *string    `json:"base"`   // shared, unrelated or absent; null by commit and without a statement
	Level   *string    `json:"level"`
	Who     string     `json:"who"`
	Key     string     `json:"key"` // its fingerprint
	Closed  bool       `json:"closed"`
	Reasons []reason   `json:"reasons"`
	// Statement is the statement that was found, null if there is none.
	Statement *evidence.Statement `json:"statement"`
}

// reason is why a commit is not verified.
type reason struct {
	Missing bool   `json:"missing"`
	Text    string `json:"text"`
}

func documentOf(rows []row, result result) document {
	d := document{Version: ui.DocumentVersion, Verified: result.err == nil}
	for _, r := range rows {
		v := r.verdict
		one := commitDocument{Commit: r.ID, Tree: r.Tree, Subject: gitops.Text(r.Subject).String(), Result: r.word()}
		for _, fault := range v.Faults {
			one.Reasons = append(one.Reasons, reason{evidence.Missing(fault), gitops.Text(fault.Error()).String()})
		}
		if v.By != "" {
			by, of, level := v.By, string(v.Statement.Commit()), string(v.Level)
			one.By, one.Of, one.Level, one.Who, one.Key, one.Closed, one.Statement = &by, &of, &level, gitops.Text(v.Who).String(), v.Fingerprint, v.Chain.Closed, &v.Statement
		}
		if base := string(r.base); base != "" {
			one.Base = &base
		}
		d.Commits = append(d.Commits, one)
	}
	return d
}
