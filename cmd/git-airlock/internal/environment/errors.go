package environment

import "fmt"

// Refusal is what waits for the user to act.
type Refusal struct {
	Text string
	Next []string // commands to type
}

func (e *Refusal) Error() string { return e.Text }

// Advised is an error with what to type next.
type Advised struct {
	Err  error
	Next []string
}

func (e *Advised) Error() string { return e.Err.Error() }

func (e *Advised) Unwrap() error { return e.Err }

// Advise adds to an error what to type next.
func Advise(err error, next ...string) error { return &Advised{err, next} }

// count is a number of things: "1 commit", "2 commits".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
