// Package execs records the programs that run in a prison. [Read] returns its [Record] values. In a recorder, record (role_linux.go)
// begins, and execute (recorder_linux.go) handles a call.
//
// A prison's init gives its processes a filter of system calls that sends execve(2), execveat(2), exit(2) and exit_group(2) to a listener
// (seccomp_unotify(2)). In a container each command has a listener, see package containers. The keeper holds the listener, and another
// process, the recorder, answers: it reads the path and the arguments from the memory of the calling process, and lets the call continue.
// Nothing inside can reach the listener or the recorder.
//
// # What a record means
//
// A record contains the arguments that a process had when it made the call. The kernel reads them once more, so another thread can change
// them in between. Therefore the recorder also reads what the kernel gave to the new program: the kernel's copy of path and arguments, and
// the file (exe). It does so a moment after the call, or at the latest when the process exits or makes its next call, before it can
// continue. It marks a record as disputed if they differ, or if the program was killed before the check. It also does so for a program that
// a rule refuses by the path of its file, and that ran because the path led elsewhere during the comparison. A program can change its copy
// of the arguments, but not exe.
//
// Some programs always change their copy: getopt(1), which shell scripts call, puts a zero byte in place of each comma of a list. Nothing
// shows any more which byte the kernel had copied there. A record is not disputed if the call had a comma there, but it has the zero byte,
// so that it states no byte that was not compared. Its words begin where the kernel's list of the arguments points to. If the program
// has changed the list as well, two words of the call are one in the record, with a zero byte between them.
//
// No event reports that a call has failed. A process that has executed nothing yet has a flag of the kernel (PF_FORKNOEXEC). Another process
// executes the same program as before if the kernel's addresses of the program are the same: it chooses some at random, and has a flag for
// that, too (PF_RANDOMIZE). Nothing inside can change the flags, and the prison refuses the one call that changes the addresses. Where the
// addresses are not random, calls of such a process that seem to have failed are disputed. If calls of several threads can have been
// carried out, and the record does not know which one was, all of them are.
//
// A record does not show the built-in commands of a shell, code in an interpreter, and programs that another program loads without execve.
// Programs of other architectures are recorded, and killed by their first system call.
//
// A rule ([Rules]) refuses a call with EPERM. It is a guard rail, not a wall: another thread can change the arguments after they were
// compared, a copy of a program has another name, and a changed copy another digest. The prison, not a rule, keeps an agent in.
//
// A digest takes the processor of the host. It is computed at an ordinary priority, and once for a file that does not change. Beyond a rate,
// the calls of the prison wait. No limit lets a program run whose digest was not compared.
//
// # Memory
//
// The recorder is a process of the host, and no limit of the prison applies to it. The bounds of calls_linux.go apply instead: a call beyond
// them is written as disputed without its result. A call is forgotten when its thread exits, makes another call, or waits elsewhere.
//
// # If a process ends
//
// The keeper's end ends the prison. If the recorder ends, the keeper starts another one, and meanwhile the prison's
// processes wait. The kernel writes each call into memory that both recorders share, so that the second one answers the
// call that the first one has taken. Without any listener, execve fails with ENOSYS: nothing runs unrecorded.
//
// The ends of programs are written a moment after they happen. A reader of the record first calls [Complete], which waits until the ends so
// far are written. At the end of a prison, the recorder goes on until the kernel reports that no process with the filter is left, and the
// keeper waits for the recorder. There is no time limit: on a busy machine, a recorder may not run for seconds.
//
// A process has one listener only. In a prison whose programs are recorded, a program that wants a listener of its own
// gets EBUSY (seccomp(2)), and has to go on without one.
//
// # Cost
//
// The recorder reads as little as possible while a process waits, and the rest while the kernel loads the program. At the first call of a
// process, it does not read what the process executes, since the kernel has a flag for processes that have executed nothing yet. The
// threads that answer and write make system calls without Go's scheduler. Otherwise a thread of the scheduler would wake up every 20 µs,
// which costs more than all reads. A thread that answers holds no lock while it reads. Secrets are masked before a record is written.
//
// scripts/bench-prison prints the cost of a record, of a listener that makes the same system calls and keeps nothing, and of one that reads
// nothing. On a busy machine, a program takes 297, 257 and 72 µs more processor time with these three (60 turns of a hundred programs).
// Reading three files of /proc (cwd, stat, exe) is most of that.
package execs
