// Package calls makes single system calls inside a running prison, as the agent, with any arguments.
//
// A shell cannot make arbitrary system calls, and a copy of this program would reveal its name inside. Instead, a minimal program, the
// runner, is copied into the prison. It reads requests of 256 bytes: the number of a call, six arguments, and 200 bytes to which
// arguments can point. For each request it makes the call and writes the result, 8 bytes. It needs no library, so it runs in every prison
// on its processor architecture. Begin reading at [Make].
package calls

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison"
)

const (
	runnerBase = 0x400000
	dataBase   = 0x600000 // address of the request in the runner's memory
	request    = 256

	// Pointer is the argument with the address of [Call.Data].
	Pointer = dataBase + 56
	// patience limits the time of all calls together.
	patience = 30 * time.Second
	// removePatience limits the time of removing the runner: an agent can stop the process that removes it.
	removePatience = 5 * time.Second
	// maxOutput limits the output that is read, in bytes. Calls and the shell write less, but the agent can write to their output.
	maxOutput = 64 << 10
)

// Call is a system call with the number and arguments of syscall(2).
type Call struct {
	Name   string // for messages
	Number uintptr
	Args   [6]uintptr
	Data   []byte // at the address [Pointer], at most 200 bytes
}

func (c Call) encode() []byte {
	b := make([]byte, request)
	binary.LittleEndian.PutUint64(b, uint64(c.Number))
	for i, a := range c.Args {
		binary.LittleEndian.PutUint64(b[8+8*i:], uint64(a))
	}
	copy(b[Pointer-dataBase:], c.Data)
	return b
}

// runner returns the program of the runner, with a page for the request.
func runner(machine uint16, code []byte) []byte { return ELF(machine, runnerBase, dataBase, code) }

var errNoRunner = errors.New("the program that makes calls is not written for this processor")

// Make makes calls, one after the other in one process. The result of each call is its return value, or the negated
// error number.
func Make(ctx context.Context, p prison.Prison, calls []Call) ([]int64, error) {
	program := ownRunner()
	if program == nil {
		return nil, errNoRunner
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// The runner goes to the first folder in which programs can be executed. The workspace comes last, because an
	// agent may be at work there.
	place, err := run(ctx, p, program, "sh", "-c", `umask 077; last=
		for d in "$HOME" /tmp "$PWD/.git" "$PWD"; do
			f=$(mktemp "$d/tmp.XXXXXX" 2>/dev/null) || continue
			if [ "$last" ]; then cat "$last" >"$f"; rm -f "$last"; else cat >"$f"; fi
			chmod 700 "$f"; "$f" </dev/null && echo "$f" && exit
			last=$f
		done
		rm -f "$last"; exit 1`)
	if err != nil {
		return nil, fmt.Errorf("bring in the program that makes calls: %w", err)
	}
	path := strings.TrimSuffix(string(place), "\n")
	defer remove(ctx, p, path)
	out, err := run(ctx, p, encode(calls), path)
	if err != nil {
		return nil, fmt.Errorf("make calls: %w", err)
	}
	return Results(out, len(calls))
}

func encode(calls []Call) []byte {
	var requests bytes.Buffer
	for _, c := range calls {
		requests.Write(c.encode())
	}
	return requests.Bytes()
}

// Results reads the results of n calls from the runner's output.
func Results(out []byte, n int) ([]int64, error) {
	if len(out) != 8*n {
		return nil, fmt.Errorf("%d bytes of results for %d calls", len(out), n)
	}
	results := make([]int64, n)
	for i := range results {
		results[i] = int64(binary.LittleEndian.Uint64(out[8*i:])) //nolint:gosec // the kernel returns negative numbers, too
	}
	return results, nil
}

// Script returns a script for sh(1) and its input, for the first process of a container. The process makes the calls and ends, and [Results]
// reads its output. The script needs a folder in which programs can be executed: its argument, or else /tmp.
func Script(calls []Call) (script string, input []byte, err error) {
	program := ownRunner()
	if program == nil {
		return "", nil, errNoRunner
	}
	// With single bytes, dd(1) reads exactly the program from a pipe.
	script = fmt.Sprintf(`umask 077; f=${1:-/tmp}/run; dd bs=1 count=%d of="$f" 2>/dev/null && chmod 700 "$f" && exec "$f"`, len(program))
	return script, append(program, encode(calls)...), nil
}

// remove removes the runner, even if the time for calls is over.
func remove(ctx context.Context, p prison.Prison, path string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removePatience)
	defer cancel()
	run(ctx, p, nil, "rm", "-f", path) //nolint:errcheck // on failure the runner stays in the prison's own folder
}

func run(ctx context.Context, p prison.Prison, stdin []byte, argv ...string) ([]byte, error) {
	out, errOut := prison.Capped{Max: maxOutput}, prison.Capped{Max: 200}
	q := prison.Process{Argv: argv, Stdout: &out, Stderr: &errOut}
	if stdin != nil {
		q.Stdin = bytes.NewReader(stdin)
	}
	status, err := p.Exec(ctx, q)
	if err == nil && status != 0 {
		err = fmt.Errorf("status %d: %s", status, strings.TrimSpace(errOut.String()))
	}
	return out.Bytes(), err
}
