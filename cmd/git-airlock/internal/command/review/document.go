package review

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/verdict"
)

// document is version 1 of review --json.
type document struct {
	Version int         `json:"version"`
	Mode    review.Mode `json:"mode"`
	review.Counts
	Commits []reviewed       `json:"commits"`
	Rebased []ledger.Rebased `json:"rebased"` // nothing of these commits lands again
}

// reviewed is a commit of the document. Its text is escaped.
type reviewed struct {
	Number   int          `json:"number"` // 0 if it could not be stored
	State    review.State `json:"state"`
	Commit   gitops.OID   `json:"commit"` // empty if it has not been built
	Inner    gitops.OID   `json:"inner"`
	Subject  string       `json:"subject"`
	Message  string       `json:"message"`          // with the subject; empty if it has not been built
	LeftOut  int          `json:"message_left_out"` // bytes at the end of the message that are not in the document
	Added    int          `json:"added"`
	Removed  int          `json:"removed"`
	Files    []file       `json:"files"`
	Findings []finding    `json:"findings"`
	Needs    []gitops.OID `json:"needs"` // inner commits
	Reason   string       `json:"reason"`
	By       string       `json:"by"`
	At       *time.Time   `json:"at"`
	Replaces gitops.OID   `json:"replaces"` // the earlier commit with a verdict that this one replaces

	of     verdict.Reviewable
	landed bool
}

type file struct {
	Path    string     `json:"path"`
	Added   int        `json:"added"` // -1 for a binary file
	Removed int        `json:"removed"`
	Blob    gitops.OID `json:"blob"`
	Seen    bool       `json:"seen"` // the user has looked at it
}

type finding struct {
	Rule   string `json:"rule"`
	Action string `json:"action"`
	Detail string `json:"detail"`
}

// documentOf lists the commits of an airlock, or those that some names stand for. With airlock.review=push, landed commits
// that may not be pushed yet come first. A record without an id stands for no airlock.
func documentOf(ctx context.Context, s *session.Session, r airlock.Record, names []string) (document, error) {
	mode, err := promote.ReadReview(s.Config.With(r.Settings))
	if err != nil {
		return document{}, err
	}
	d := document{Version: ui.DocumentVersion, Mode: mode}
	landed, rest, err := landedOf(ctx, s, names)
	if err != nil || r.ID == "" || len(names) > 0 && len(rest) == 0 {
		return d.after(landed), err
	}
	d, err = d.pending(ctx, s, r, rest)
	return d.after(landed), err
}

// after returns the document with landed commits before the others.
func (d document) after(landed []reviewed) document {
	for _, x := range landed {
		d.Add(x.State)
	}
	d.Commits = append(landed, d.Commits...)
	return d
}

// pending adds the commits of an airlock that have not landed.
func (d document) pending(ctx context.Context, s *session.Session, r airlock.Record, names []string) (document, error) {
	engine := s.Engine(r)
	defer engine.Close()
	list, err := verdict.List(ctx, engine)
	if err != nil {
		return d, err
	}
	d.Counts = verdict.Count(list)
	if len(names) == 0 {
		last, err := ledger.ReadOutcome(engine.Dir())
		if err != nil {
			return d, err
		}
		d.Rebased = append(d.Rebased, last.Rebased...)
	}
	var wanted []gitops.OID
	for _, name := range names {
		one, err := verdict.Find(ctx, engine, list, name)
		if err != nil {
			return d, adviseOn(err, verdict.Request{})
		}
		wanted = append(wanted, one.Inner)
	}
	for _, x := range list {
		if len(names) == 0 || slices.Contains(wanted, x.Inner) {
			d.Commits = append(d.Commits, reviewedOf(x))
		}
	}
	return d, nil
}

// messagesLimit bounds the bytes of the messages in a document, all together.
const messagesLimit = 16 << 20

func (d document) addMessages(ctx context.Context, s *session.Session) error {
	var ids []gitops.OID
	var built []int
	for i, x := range d.Commits {
		if x.Commit != "" {
			ids, built = append(ids, x.Commit), append(built, i)
		}
	}
	room := messagesLimit
	return s.Repo.Messages(ctx, ids, verdict.MessageLimit, func(n int, message []byte, left int) error {
		var text strings.Builder
		shown := message[:min(len(message), room)]
		verdict.PrintMessage(&text, "", shown, 0)
		x := &d.Commits[built[n]]
		x.Message, x.LeftOut = text.String(), left+len(message)-len(shown)
		room -= len(shown)
		return nil
	})
}

// waits reports whether a commit waits for a verdict.
func (d document) waits() bool {
	return slices.ContainsFunc(d.Commits, func(x reviewed) bool { return x.State.Waits() })
}

// short returns the abbreviated id of a commit.
func (r reviewed) short() string { return fmt.Sprintf("%.12s", cmp.Or(r.Commit, r.Inner)) }

// handle returns what a user can type for a commit: its number, or else its id.
func (r reviewed) handle() string {
	if r.Number == 0 {
		return r.short()
	}
	return strconv.Itoa(r.Number)
}

// name returns the number of a commit, if it has one, and its id.
func (r reviewed) name() string {
	if r.Number == 0 {
		return r.short()
	}
	return strconv.Itoa(r.Number) + " " + r.short()
}

func reviewedOf(x verdict.Reviewable) reviewed {
	r := reviewed{Number: x.Number, State: x.State, Commit: x.Commit, Inner: x.Inner, Subject: x.Subject, Added: x.Added(), Removed: x.Removed(),
		Needs: x.Needs, Reason: x.Reason, By: x.By, Replaces: x.Before, of: x}
	if !x.At.IsZero() {
		r.At = &x.At
	}
	for _, f := range x.Files {
		r.Files = append(r.Files, file{gitops.Text(f.Path).String(), f.Added, f.Removed, f.Blob, x.Seen(f)})
	}
	for _, f := range x.Findings {
		r.Findings = append(r.Findings, finding{f.Rule, f.Action.String(), f.Detail})
	}
	return r
}
