package environment

import "fmt"

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

// count formats a number of things: "1 commit", "2 commits".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
