package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// TestInstall installs, upgrades and removes the program under test.
func TestInstall(t *testing.T) {
	needNative(t)
	needPrograms(t, "man", "fish")
	t.Parallel()
	top, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	runScripts(t, scriptsIn(t, "install"), testscript.Params{Setup: func(env *testscript.Env) error {
		env.Setenv("TOP", top)
		return setup(t)(env)
	}})
}

const testVersion = "1.2.3-rc1"

// TestRelease makes a release for one platform and uses it. It makes it again, as another user would, and compares the bytes.
// `scripts/release --check` does so for all platforms, with an empty build cache.
func TestRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("a long test (scripts/test --everywhere)")
	}
	if onceMore() {
		t.Skip("what is made is the same for every user")
	}
	needPrograms(t, "dpkg-deb", "man")
	t.Parallel() // it waits for compilers and archives
	made := releaseFolder(t)
	release(t, "../..", made)
	names, err := os.ReadDir(made)
	if err != nil || len(names) != 4 {
		t.Fatalf("made %v: %v", names, err)
	}
	sources, again := filepath.Join(t.TempDir(), "other sources"), filepath.Join(t.TempDir(), "a place", "elsewhere")
	copySources(t, sources)
	release(t, sources, again, "TZ=Asia/Tokyo", "LC_ALL=tr_TR.UTF-8", "GOFLAGS=-buildvcs=auto", "GOAMD64=v3")
	for _, e := range names {
		if !bytes.Equal(read(t, filepath.Join(made, e.Name())), read(t, filepath.Join(again, e.Name()))) {
			t.Errorf("%s has other bytes the second time", e.Name())
		}
	}
	lookIntoArchive(t, made)
}

// releaseFolder returns the folder in which TestRelease leaves its first release for TestPackage.
func releaseFolder(t *testing.T) string {
	return cmp.Or(os.Getenv("AIRLOCK_TEST_RELEASE"), t.TempDir())
}

func release(t *testing.T, top, out string, env ...string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(top, "scripts/release"), "--version", testVersion, "--only", "linux/amd64", "--out", out)
	cmd.Env = append(append(os.Environ(), "SOURCE_DATE_EPOCH=1750000000", "DPKG_DEB_COMPRESSOR_LEVEL=0"), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// copySources copies the sources, with other times and modes.
func copySources(t *testing.T, to string) {
	t.Helper()
	script := `mkdir -p "$0" && tar -C ../.. -c --exclude=./.git --exclude='./.*-[0-9a-f][0-9a-f][0-9a-f][0-9a-f]' . | (umask 077; tar -x -m --no-same-permissions -C "$0")`
	if out, err := exec.Command("sh", "-euc", script, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
	return string(out)
}

func lookIntoArchive(t *testing.T, dir string) {
	name := "git-airlock-" + testVersion + "-linux-amd64"
	output(t, "tar", "-C", dir, "-xzf", filepath.Join(dir, name+".tar.gz"))
	tree := filepath.Join(dir, name)
	for _, file := range []string{"LICENSE", "README.md", "CHANGELOG.md", "share/man/man1/git-airlock-start.1", "share/zsh/site-functions/_git-airlock",
		"share/bash-completion/completions/git-airlock", "share/fish/vendor_conf.d/git-airlock.fish"} {
		if len(read(t, filepath.Join(tree, file))) == 0 {
			t.Errorf("%s is empty", file)
		}
	}
	program := filepath.Join(tree, "bin/git-airlock")
	if got := output(t, program, "--version"); got != "git-airlock version "+testVersion+" (linux/amd64)\n" {
		t.Errorf("--version says %q", got)
	}
	if got := output(t, "sh", "-c", `cd "$0" && sha256sum -c --quiet SHA256SUMS`, dir); got != "" {
		t.Errorf("SHA256SUMS: %s", got)
	}
	var bom struct {
		BomFormat, SpecVersion string
		Metadata               struct {
			Timestamp string
			Component struct {
				Version string
				Hashes  []struct{ Alg, Content string }
			}
		}
		Components []struct {
			Name, Version, PURL string
			Licenses            []struct {
				License    struct{ ID string }
				Expression string
			}
		}
	}
	if err := json.Unmarshal(read(t, filepath.Join(dir, name+".cdx.json")), &bom); err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(read(t, program)))
	if bom.BomFormat != "CycloneDX" || bom.SpecVersion != "1.5" || bom.Metadata.Timestamp != "2025-06-15T15:06:40Z" ||
		bom.Metadata.Component.Version != testVersion || bom.Metadata.Component.Hashes[0].Content != sum {
		t.Errorf("the list of components is of %+v", bom.Metadata)
	}
	built, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if len(bom.Components) != len(built.Deps)+2 {
		t.Fatalf("%d components are listed; the program has %d, the standard library and rules", len(bom.Components), len(built.Deps))
	}
	texts := string(read(t, filepath.Join(tree, "LICENSES.third-party")))
	for _, c := range bom.Components {
		if len(c.Licenses) != 1 || c.Licenses[0].License.ID == "" && c.Licenses[0].Expression == "" || !strings.Contains(texts, c.Name+" "+c.Version+", LICEN") {
			t.Errorf("%s: the licence is %+v, or its text is missing", c.Name, c.Licenses)
		}
	}
	for i, dep := range built.Deps {
		if c := bom.Components[i+1]; c.Name != dep.Path || c.Version != dep.Version || !strings.HasPrefix(c.PURL, "pkg:golang/") {
			t.Errorf("component %+v stands for %s %s", c, dep.Path, dep.Version)
		}
	}
}

// TestPackage installs the Debian package on this machine, uses it, and removes it. scripts/test runs it alone, because the package's
// files in /usr have this program's name and are readable in every prison.
func TestPackage(t *testing.T) {
	if testing.Short() {
		t.Skip("a long test (scripts/test --everywhere)")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root installs packages")
	}
	if _, err := os.Lstat("/usr/bin/git-airlock"); err == nil {
		prisontest.Need(t, "shells", errors.New("git-airlock is installed on this machine; the test would replace it"))
	}
	needPrograms(t, "dpkg-deb", "man")
	made := releaseFolder(t)
	file := filepath.Join(made, "git-airlock_"+testVersion+"_amd64.deb")
	if _, err := os.Stat(file); err != nil {
		release(t, "../..", made)
	}
	dpkg(t, "--path-include=/usr/share/man/*", "--install", file) // containers exclude manuals
	defer dpkg(t, "--purge", "git-airlock")
	installed := strings.Fields(output(t, "dpkg-query", "--listfiles", "git-airlock"))
	dir := t.TempDir()
	cmd := exec.Command("sh", "-euc", `
		git airlock --version
		man -w git-airlock-start
		git init -q r && cd r
		git -c user.name=U -c user.email=u@h commit -q --allow-empty -m base
		git config user.name U; git config user.email u@h
		git airlock run --selftest -- sh -c 'test -z "$(find / -xdev -name "*airlock*" 2>/dev/null)" && git commit -q --allow-empty -m landed'
		git log -1 --format=%s
		git airlock clear`)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C.UTF-8", "TMPDIR=" + dir}
	out, err := cmd.CombinedOutput()
	for _, want := range []string{"git-airlock version " + testVersion, "/usr/share/man/man1/git-airlock-start.1.gz\n", "\nlanded\n"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("%v: there is no %q in %s", err, want, out)
		}
	}
	dpkg(t, "--purge", "git-airlock")
	for _, name := range installed {
		if _, err := os.Lstat(name); err == nil && strings.Contains(name, "airlock") {
			t.Errorf("%s is left", name)
		}
	}
}

// dpkg runs dpkg when no other process on this machine uses it.
func dpkg(t *testing.T, args ...string) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Second) {
		out, err := exec.Command("dpkg", args...).CombinedOutput()
		if err == nil {
			return
		}
		if !strings.Contains(string(out), "lock") || time.Now().After(end) {
			t.Fatalf("dpkg %q: %v: %s", args, err, out)
		}
	}
}
