package environment

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
