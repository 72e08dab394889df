package docker

import (
	"context"
	"errors"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/watch/containers"
	"github.com/git-airlock/git-airlock/prison/watch/execs"
)

// unrecorded returns the reason why the programs of a prison cannot be recorded, if that is known before the container runs.
func unrecorded(p *dialect.Platform, s prison.Spec) error {
	if p.Foreign(s.Runtime) {
		return errors.New("the runtime has a kernel of its own, which starts them")
	}
	return containers.Check()
}

// checkPrograms returns an error for rules that cannot be enforced here.
func checkPrograms(p *dialect.Platform, s prison.Spec) error {
	if len(s.Deny) == 0 {
		return nil
	}
	if _, err := execs.ParseRules(s.Deny); err != nil {
		return err
	}
	return unenforceable(unrecorded(p, s))
}

// unenforceable returns the refusal of rules for programs, which cannot be enforced for a reason. It is nil without a reason.
func unenforceable(reason error) error {
	if reason == nil {
		return nil
	}
	return dialect.Unavailable("rules for programs (airlock.exec.deny, or a policy's) need their record: "+reason.Error(), "git airlock start --backend native")
}

// recordPrograms begins the record of a container's programs. It must be called before the first command is executed.
func (e *engine) recordPrograms(ctx context.Context, p *dialect.Platform, r *state, s prison.Spec) error {
	if !s.Record {
		return nil
	}
	err := unrecorded(p, s)
	if err == nil {
		o := containers.Order{Dir: s.Dir, Container: r.Container, Deny: s.Deny, Env: s.Env}
		if o.First, err = e.firstProcess(ctx, r.Container); err != nil {
			return err
		}
		if err = containers.Start(ctx, o); err == nil {
			return nil
		}
		if !errors.Is(err, containers.ErrElsewhere) {
			return err
		}
	}
	if len(s.Deny) > 0 {
		return unenforceable(err)
	}
	p.Weaker = append(p.Weaker, prison.Unrecorded(err.Error()))
	return containers.End(ctx, s.Dir)
}

// firstProcess returns the process id of a container's first process.
func (e *engine) firstProcess(ctx context.Context, id string) (pid int, err error) {
	c, err := e.Inspect(ctx, id)
	if err != nil || c.State == nil {
		return 0, e.Failed(ctx, "inspect container", err)
	}
	return c.State.Pid, nil
}
