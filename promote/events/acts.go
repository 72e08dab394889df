package events

import (
	"fmt"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/operation"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/words"
)

// verdictWords maps verdicts to words for people.
var verdictWords = map[review.Word]string{review.Approve: "approved", review.Reject: "rejected", review.Fix: "to be fixed by the agent:"}

// Verdict notes a verdict of the user on a commit.
func Verdict(dir, session string, word review.Word, commit gitops.OID, subject, reason string) {
	text := fmt.Sprintf("%s %.12s %s", verdictWords[word], commit, subject)
	if reason != "" {
		text += ": " + reason
	}
	Append(dir, record.Event{Level: record.Info, Kind: record.EventVerdict, Session: session, Text: text,
		Data: map[string]string{"verdict": string(word), "commit": string(commit), "reason": reason}})
}

// Moved notes that a landing was undone, made again or reverted. The branch is now at the commit After of the operation.
func Moved(dir, session string, o operation.Operation) {
	kind, done := record.EventUndo, "undone"
	switch o.Kind {
	case operation.Redo:
		kind, done = record.EventRedo, "made again"
	case operation.Revert:
		done = "reverted"
	}
	Append(dir, record.Event{Level: record.Notice, Kind: kind, Session: session, Text: fmt.Sprintf("%s: operation %d, and the branch is at %.12s", done, o.Of, o.After),
		Data: map[string]string{"operation": fmt.Sprint(o.Of), "commit": string(o.After)}})
}

// Synced notes that the agent got the user's commits up to the given one.
func Synced(dir, session string, commit gitops.OID, paths int) {
	Append(dir, record.Event{Level: record.Info, Kind: record.EventSync, Session: session,
		Text: fmt.Sprintf("brought %s to the agent, up to commit %.12s of yours", words.Count(paths, "path"), commit),
		Data: map[string]string{"commit": string(commit)}})
}
