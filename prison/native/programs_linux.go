package native

import (
	"os"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native/walls"
	"github.com/git-airlock/git-airlock/prison/watch/execs"
	"github.com/git-airlock/git-airlock/prison/watch/recorders"
)

// checkPrograms turns the record off if it cannot be made here, unless rules need it.
func checkPrograms(s *prison.Spec) ([]prison.Weakness, error) {
	if !s.Record {
		return nil, nil
	}
	rules, err := execs.ParseRules(s.Deny)
	if err != nil {
		return nil, err
	}
	err = walls.CheckPrograms()
	switch {
	case err == nil && rules.NeedsContent() && os.Geteuid() != 0:
		return nil, walls.Unavailable("only root can read the programs of the prison, which rules with sha256: need")
	case err == nil:
		return nil, nil
	case len(s.Deny) > 0:
		return nil, walls.Unavailable("rules for programs need their record: " + err.Error())
	}
	s.Record = false
	return []prison.Weakness{prison.Unrecorded(err.Error())}, nil
}

// startPrograms starts the recorder of a prison that does not run yet, and returns nil for a prison without a record.
func startPrograms(s prison.Spec, note func(pid int) error) (*recorders.Recorders, error) {
	if !s.Record {
		return nil, nil
	}
	return recorders.Start(recorders.Config{Dir: s.Dir, Deny: s.Deny, Env: s.Env, Note: note})
}
