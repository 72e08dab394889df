package environment

import "github.com/git-airlock/git-airlock/gitops"

// Refusal is an error that needs an action of the user.
type Refusal struct {
	Text string
	Next []string // the next commands
}

func (e *Refusal) Error() string { return e.Text }

// Advised is an error with the next commands.
type Advised struct {
	Err  error
	Next []string
}

func (e *Advised) Error() string { return e.Err.Error() }

func (e *Advised) Unwrap() error { return e.Err }

// Advise adds the next commands to an error.
func Advise(err error, next ...string) error { return &Advised{err, next} }

// AdvisePartial adds to an error about objects the command that lists the remotes, if the repository is a partial clone: git may have to
// get the objects from a remote. A nil error stays nil.
func AdvisePartial(config gitops.Config, err error) error {
	if err == nil || !config.Partial() {
		return err
	}
	return Advise(err, "git remote -v  # in this partial clone the remote has the missing objects")
}
