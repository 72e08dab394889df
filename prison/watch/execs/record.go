package execs

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Names of the files in a prison's folder. An older file has the records from before the last rotation. What a rule refused is in files of
// its own as well, so that programs that ran do not push it out.
const (
	FileName      = "exec.jsonl"
	OldName       = FileName + older
	DeniedName    = "exec-denied.jsonl"
	OldDeniedName = DeniedName + older
	older         = ".1"
)

// Names returns the names of the files, in the order in which they are read.
func Names() []string { return []string{OldDeniedName, DeniedName, OldName, FileName} }

const (
	// maxFile is the size in bytes at which the file is rotated. Both files together are at most twice as large.
	maxFile = 32 << 20
	// maxDenied is maxFile for what a rule refused.
	maxDenied = 4 << 20
	// maxArguments bounds the bytes of recorded arguments, also in the form that they have in a line.
	maxArguments = 32 << 10
	// maxPath bounds the bytes of a path: PATH_MAX of the kernel.
	maxPath = 4096
	// maxLine bounds the bytes of a line of the file, also of earlier versions. JSON needs up to six bytes for one.
	maxLine = 6 * (maxArguments + 4*maxPath)
)

// Record is one call of execve or execveat, and a line of the file. A later line with the same number replaces the earlier one:
// a program that runs for longer than a moment has one line for its start, and one for its end.
type Record struct {
	Time time.Time `json:"t"`
	Seq  uint64    `json:"seq"`
	PID  int       `json:"pid"`  // inside
	PPID int       `json:"ppid"` // inside
	CWD  string    `json:"cwd"`
	// Path and Argv are those of the call. Secrets in them are masked. A zero byte in Argv is one that the program has written into
	// its own copy: a comma or the end of an argument was there.
	Path string   `json:"path"`
	Argv []string `json:"argv"`
	// Exe is the file that was executed. It is null if no program ran, or if it is not known.
	Exe *string `json:"exe"`
	// Exit is the exit status of the process, or 128+n after signal n. It is null while the process runs, for a program that
	// did not run, and for one that was neither the first nor the last of its process.
	Exit *int `json:"exit"`
	// MS is the time in milliseconds from the call to the end of the process, or of this program if another one followed in the process.
	MS *int64 `json:"ms"`
	// Top reports that the parent of the process is the launched command, a shell for example.
	Top bool `json:"top"`
	// Deny is the rule that refused the call.
	Deny *string `json:"deny"`
	// Disputed reports that the program that ran has other arguments than the call, is a file that a rule refuses, or could not be checked, or
	// that the call may have been carried out or not.
	Disputed bool `json:"disputed"`
	// Cut reports that a part of the path or the arguments is not recorded.
	Cut bool `json:"cut"`
}

// Ran reports whether a program was executed, as far as is known.
func (r Record) Ran() bool { return r.Exe != nil || r.Disputed }

// Read returns the records of the prison with a folder, in the order of their numbers. A line that was not written completely is
// skipped. Without a record, the error is that of [os.Open].
func Read(dir string) ([]Record, error) {
	var all []Record
	var none error // from the last file; after a rotation it comes with the next record
	for _, name := range Names() {
		err := readFile(filepath.Join(dir, name), maxFile+maxLine, func(r Record) { all = append(all, r) })
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		none = err
	}
	if len(all) == 0 {
		return nil, none
	}
	return merge(all), nil
}

// merge sorts records, and removes those that a later record with the same number replaces.
func merge(all []Record) []Record {
	slices.SortStableFunc(all, func(a, b Record) int { return cmp.Compare(a.Seq, b.Seq) })
	kept := all[:0]
	for i, r := range all {
		if i+1 == len(all) || all[i+1].Seq != r.Seq {
			kept = append(kept, r)
		}
	}
	return kept
}

// readFile calls each for every record in the last bytes of a file.
func readFile(path string, bytes int64, each func(Record)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > bytes {
		if _, err := f.Seek(-bytes, io.SeekEnd); err != nil {
			return err
		}
	}
	lines := bufio.NewReaderSize(f, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			continue // not a line of a recorder
		}
		var r Record
		if err == nil && json.Unmarshal(line, &r) == nil && r.Seq > 0 {
			each(r)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// file is a part of the record on disk.
type file struct {
	dir, name string
	most      int64 // the size at which it is rotated
	f         *os.File
	size      int64  // of f, in bytes
	lines     []byte // a buffer for append
	denied    *file  // what a rule refused, or nil in this file itself
}

// openFile opens the record for appending, and returns the highest number in it.
func openFile(dir string) (*file, uint64, error) {
	w := &file{dir: dir, name: FileName, most: maxFile, denied: &file{dir: dir, name: DeniedName, most: maxDenied}}
	if err := errors.Join(w.open(), w.denied.open()); err != nil {
		return nil, 0, err
	}
	last, err := newest(dir, tail)
	if err != nil {
		return nil, 0, err
	}
	return w, last, nil
}

// Newest returns about the number of the newest record of the prison with a folder: there may be newer ones, but few. It is 0 without a
// record. It reads little.
func Newest(dir string) (uint64, error) { return newest(dir, 2*maxLine) }

// newest returns the highest number in the last bytes of each file.
func newest(dir string, bytes int64) (last uint64, err error) {
	for _, name := range Names() {
		err := readFile(filepath.Join(dir, name), bytes, func(r Record) { last = max(last, r.Seq) })
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
	return last, nil
}

// tail is how many bytes at the end of a file contain its highest number. The last line may have a lower one, since it may be the end of an
// earlier program.
const tail = 8 << 20

// open opens the current file. It ends a line that a previous recorder did not complete.
func (w *file) open() error {
	f, err := os.OpenFile(filepath.Join(w.dir, w.name), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	w.f, w.size = f, 0
	if info, err := f.Stat(); err == nil {
		w.size = info.Size()
	}
	var last [1]byte
	if n, _ := f.ReadAt(last[:], w.size-1); n == 1 && last[0] != '\n' {
		f.Write([]byte("\n")) //nolint:errcheck // if it fails, the next record is on that line, and lost
	}
	return nil
}

// maxLines is about how many bytes of lines are written together.
const maxLines = 1 << 20

// append writes records. On an error, the records that were not written are lost, which their missing numbers show.
func (w *file) append(records []Record) error {
	err := w.appendTo(records)
	if w.denied == nil || !slices.ContainsFunc(records, isDenied) {
		return err
	}
	refused := slices.DeleteFunc(slices.Clone(records), func(r Record) bool { return !isDenied(r) })
	return errors.Join(err, w.denied.appendTo(refused))
}

func isDenied(r Record) bool { return r.Deny != nil }

// appendTo is append for one file.
func (w *file) appendTo(records []Record) error {
	w.lines = w.lines[:0]
	for i := range records {
		if w.lines = records[i].appendLine(w.lines); len(w.lines) < maxLines && i < len(records)-1 {
			continue
		}
		if err := w.put(); err != nil {
			return err
		}
	}
	return nil
}

// put writes the buffer, and empties it.
func (w *file) put() error {
	defer func() { w.lines = w.lines[:0] }()
	if w.f == nil {
		if err := w.open(); err != nil {
			return err
		}
	}
	n, err := write(w.f, w.lines)
	w.size += int64(n)
	if err != nil {
		w.f.Close()
		w.f = nil // opening it again ends the incomplete line
		return err
	}
	if w.size < w.most {
		return nil
	}
	w.f.Close()
	w.f = nil
	return os.Rename(filepath.Join(w.dir, w.name), filepath.Join(w.dir, w.name+older))
}
