//go:build linux

package native_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// toolchains are tools that agents use. Each script must succeed if its first word exists.
var toolchains = map[string]string{
	"git":        `git init -q r && cd r && git config user.name a && git config user.email a@b && echo 1 > f && git add f && git commit -qm 1 && git gc -q && git fsck && git worktree add -q ../w && git clone -q . ../c`,
	"make":       `printf 'all:\n\t@echo made\n' > Makefile && make -j2`,
	"gcc":        `printf '#include <stdio.h>\nint main(void){puts("hi");return 0;}\n' > m.c && gcc -O1 -o m m.c && ./m`,
	"python3":    `python3 -c 'import subprocess,tempfile,socket,threading,multiprocessing as m; print(subprocess.check_output(["echo","x"])); m.get_context("spawn").Value("i"); a,b=socket.socketpair(); tempfile.TemporaryDirectory(); t=threading.Thread(target=print); t.start(); t.join()'`,
	"node":       `node -e 'const {execSync}=require("child_process"); const fs=require("fs"); fs.watch(".").close(); require("os").networkInterfaces(); new (require("worker_threads").Worker)("1",{eval:true}).on("exit",()=>console.log(String(execSync("echo x"))))'`,
	"npm":        `npm --version`,
	"ssh-keygen": `ssh-keygen -q -t ed25519 -N '' -f key && ssh-keygen -lf key`,
	"rustc":      `printf 'fn main() { println!("hi"); }' > m.rs && rustc m.rs && ./m`,
	"perl":       `perl -e 'print join ",", map { $_*2 } 1..3'`,
	"tar":        `mkdir t && echo 1 > t/f && tar czf t.tgz t && tar xzf t.tgz`,
	"cp":         `echo 1 > s && cp --reflink=auto -a s d && install -m 755 s i && mv d e && chmod -R a+rX . && ln -s s l && stat l`,
	"strace":     `strace -f -o trace true && test -s trace`,
	"gdb":        `gdb -batch -ex run --args /bin/true`,
	"go": `mkdir g && cd g && printf 'module m\ngo 1.20\n' > go.mod && printf 'package main\nfunc main() { println("hi") }\n' > m.go &&
		GOFLAGS=-mod=mod GOTOOLCHAIN=local CGO_ENABLED=0 go build -o m . && ./m`,
}

// TestToolchains uses the tools inside, as a developer would.
func TestToolchains(t *testing.T) {
	b, s := prepared(t)
	s.Limits = prison.Limits{}
	start(t, b, s)
	p := attach(t, b, s)
	for tool, script := range toolchains {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			if tool == "go" && testing.Short() {
				t.Skip("building takes long (scripts/test --everywhere)")
			}
			var out bytes.Buffer
			status, err := p.Exec(t.Context(), prison.Process{
				Argv:   []string{"sh", "-c", `command -v "$0" > /dev/null || exit 42; mkdir -p "of-$0" && cd "of-$0" || exit 1; ` + script, tool},
				Stdout: &out, Stderr: &out,
			})
			if status == 42 {
				prisontest.Need(t, tool, fmt.Errorf("there is no %s inside", tool))
			}
			if err != nil || status != 0 {
				t.Errorf("status %d, %v\n%s", status, err, strings.TrimSpace(out.String()))
			}
		})
	}
}

// TestForeignCalls executes programs that use system calls of other architectures.
func TestForeignCalls(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the programs are for amd64")
	}
	// mov eax, 1 (exit); xor ebx, ebx; int 0x80: the same bytes work on 32-bit and 64-bit machines.
	code := []byte{0xb8, 1, 0, 0, 0, 0x31, 0xdb, 0xcd, 0x80, 0xf4}
	b, s := prepared(t)
	start(t, b, s)
	p := attach(t, b, s)
	for name, program := range map[string][]byte{"32 bits": elf32(code), "64 bits": elf64(code)} {
		status, err := p.Exec(t.Context(), prison.Process{
			Argv: []string{"sh", "-c", "cat > foreign && chmod 755 foreign && ./foreign"}, Stdin: bytes.NewReader(program),
		})
		if err != nil || status == 0 {
			t.Errorf("%s: status %d, %v", name, status, err)
		}
		// SIGSYS. Where the kernel has no calls of 32 bits, it executes no such program, or ends it with SIGSEGV.
		if status != 159 && (executes(t, program) || status != 139 && status != 126) {
			t.Errorf("%s: status %d", name, status)
		}
	}
}

// executes reports whether this machine executes a program outside of a prison, with status 0.
func executes(t *testing.T, program []byte) bool {
	t.Helper()
	name := filepath.Join(t.TempDir(), "foreign")
	if err := os.WriteFile(name, program, 0o755); err != nil {
		t.Fatal(err)
	}
	return exec.Command(name).Run() == nil
}

// elf64 returns the smallest ELF program with the given code.
func elf64(code []byte) []byte {
	const base, head = 0x400000, 64 + 56
	le := binary.LittleEndian
	f := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	f = le.AppendUint16(f, 2)
	f = le.AppendUint16(f, 62)
	f = le.AppendUint32(f, 1)
	f = le.AppendUint64(f, base+head)
	f = le.AppendUint64(f, 64)
	f = le.AppendUint64(f, 0)
	f = le.AppendUint32(f, 0)
	for _, n := range []uint16{64, 56, 1, 0, 0, 0} {
		f = le.AppendUint16(f, n)
	}
	f = le.AppendUint32(f, 1)
	f = le.AppendUint32(f, 5)
	for _, n := range []uint64{0, base, base, uint64(head + len(code)), uint64(head + len(code)), 0x1000} {
		f = le.AppendUint64(f, n)
	}
	return append(f, code...)
}

// elf32 returns the same for the 32-bit architecture.
func elf32(code []byte) []byte {
	const base, head = 0x8048000, 52 + 32
	le := binary.LittleEndian
	f := append([]byte("\x7fELF\x01\x01\x01"), make([]byte, 9)...)
	f = le.AppendUint16(f, 2)
	f = le.AppendUint16(f, 3)
	for _, n := range []uint32{1, base + head, 52, 0, 0} {
		f = le.AppendUint32(f, n)
	}
	for _, n := range []uint16{52, 32, 1, 0, 0, 0} {
		f = le.AppendUint16(f, n)
	}
	for _, n := range []uint32{1, 0, base, base, uint32(head + len(code)), uint32(head + len(code)), 5, 0x1000} {
		f = le.AppendUint32(f, n)
	}
	return append(f, code...)
}
