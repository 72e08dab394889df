package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/image"
	"github.com/git-airlock/git-airlock/prison/recipe"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// startFlags are the options of start and run.
func startFlags() []cli.Flag {
	return append(hostProgramFlags(), []cli.Flag{
		&cli.StringFlag{Name: "backend", Usage: "how the prison is made: `auto|native|docker`"},
		&cli.StringFlag{Name: "image", Usage: "container `image` with git and a shell, for the docker backend"},
		&cli.StringFlag{Name: "runtime", Usage: "container `runtime`, such as runsc; default: the engine's"},
		&cli.StringFlag{Name: "network", Usage: "what the prison can reach: `none|open`"},
		&cli.StringFlag{Name: "memory", Usage: "memory of the prison, such as `4g`"},
		&cli.StringFlag{Name: "cpus", Usage: "`number` of cores the prison may use"},
		&cli.StringFlag{Name: "pids", Usage: "`number` of processes and threads in the prison"},
		&cli.StringSliceFlag{Name: "env", Usage: "pass `NAME[=VALUE]` into the prison; nothing else is"},
		allowSecretsFlag,
		&cli.BoolFlag{Name: "no-recipe", Usage: "do without " + recipe.FileName + " and what stands in for it"},
		&cli.BoolFlag{Name: "selftest", Usage: "refuse a prison that does not keep what it promises"},
		engineFlag,
		&cli.BoolFlag{Name: "no-auto-land", Usage: "let commits wait as pending until \"git airlock promote\""},
	}...)
}

var engineFlag = &cli.StringFlag{Name: "engine", Usage: "how changes are carried out: `tree|patch`"}

// requestOf reads the options, and the configuration for what they leave open. command is to be launched.
func requestOf(c *cli.Context, s *session.Session, command []string) (session.Request, error) {
	r, err := readRequest(c, s, command)
	return r, ofOption(c, err)
}

func readRequest(c *cli.Context, s *session.Session, command []string) (r session.Request, err error) {
	options := layered(c, s)
	r = session.Request{Command: command, Image: options.String("airlock.image", ""), Runtime: options.String("airlock.runtime", ""),
		BackendGiven: c.IsSet("backend"), ImageGiven: c.IsSet("image") || c.IsSet("runtime"), EnvKey: envKey}
	for _, f := range startFlags() {
		if name := f.Names()[0]; c.IsSet(name) {
			r.Given = append(r.Given, "--"+name)
			r.Typed = append(r.Typed, typed(c, f)...)
		}
	}
	if r.Overrides, err = overrides(c, s); err != nil {
		return r, err
	}
	if err := readSwitches(c, options, &r); err != nil {
		return r, err
	}
	if r.Dotenv, err = environment.Dotenv(s.Repo.Top); err != nil {
		return r, err
	}
	if r.Env, err = session.CompleteEnv("--env", c.StringSlice("env"), r.Dotenv); err != nil {
		return r, err
	}
	if len(r.Env) == 0 && s.Config.Has(envKey) {
		if r.UsualEnv, err = s.Repo.Values(c.Context, envKey); err != nil {
			return r, err
		}
	}
	if r.Tools, r.Rootfs, err = hostPrograms(c, s); err != nil {
		return r, err
	}
	if r.Isolation.Limits, err = limits(options); err != nil {
		return r, err
	}
	return r, readChoices(options, &r)
}

// typed is how an option was given, as words of a shell.
func typed(c *cli.Context, f cli.Flag) (words []string) {
	name := f.Names()[0]
	switch f.(type) {
	case *cli.BoolFlag:
		if !c.Bool(name) {
			return []string{"--" + name + "=false"}
		}
		return []string{"--" + name}
	case *cli.StringSliceFlag:
		for _, value := range c.StringSlice(name) {
			words = append(words, "--"+name, gitops.Pasteable(value))
		}
		return words
	}
	return []string{"--" + name, gitops.Pasteable(fmt.Sprint(c.Value(name)))}
}

// envKey is the setting of the option --env, of any number of values.
const envKey = "airlock.env"

// listedValues are the values of an option that may be given more than once, or those of its setting.
func listedValues(c *cli.Context, s *session.Session, option, key string) ([]string, error) {
	if asked := c.StringSlice(option); len(asked) > 0 || !s.Config.Has(key) {
		return asked, nil
	}
	return s.Repo.Values(c.Context, key)
}

// layered is the configuration with the options of the same names over it.
func layered(c *cli.Context, s *session.Session) gitops.Config {
	options := gitops.Config{}
	maps.Copy(options, s.Config)
	for _, name := range []string{"backend", "image", "runtime", "network", "memory", "cpus", "pids"} {
		if c.IsSet(name) {
			options["airlock."+name] = c.String(name)
		}
	}
	return options
}

// overrides are the settings that hold for as long as the airlock lives: what "git -c" says of promotion at a start holds
// like an option.
func overrides(c *cli.Context, s *session.Session) (gitops.Config, error) {
	given, err := s.Repo.CommandConfig(c.Context)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(given, func(key, _ string) bool { return !strings.HasPrefix(key, "airlock.") })
	for option, key := range map[string]string{"no-auto-land": "airlock.autoland", "no-recipe": "airlock.recipe"} {
		if c.IsSet(option) {
			given[key] = strconv.FormatBool(!c.Bool(option))
		}
	}
	engine, err := engineOption(c)
	if engine != "" {
		given["airlock.engine"] = engine
	}
	return given, err
}

// readSwitches reads what is on or off.
func readSwitches(c *cli.Context, options gitops.Config, r *session.Request) (err error) {
	read := func(key string, otherwise bool, option string) bool {
		if c.IsSet(option) {
			return c.Bool(option) != otherwise // "--no-" goes with what is on otherwise
		}
		on, broken := options.Bool(key, otherwise)
		if broken != nil && err == nil {
			err = &promote.SettingError{Key: key, Value: options.String(key, ""), Want: "a boolean"}
		}
		return on
	}
	r.Selftest = read("airlock.selftest", false, "selftest")
	r.AllowSecrets = read("airlock.allowSecrets", false, allowSecretsFlag.Name)
	r.Recipe = read("airlock.recipe", true, "no-recipe")
	return err
}

// readChoices reads what is one of a few words, or a name.
func readChoices(options gitops.Config, r *session.Request) error {
	if r.Image != "" && !image.IsName(r.Image) {
		return &promote.SettingError{Key: "airlock.image", Value: r.Image, Want: "the name of an image, such as debian:12 or registry.example/owner/name:tag"}
	}
	r.Isolation.Network = options.String("airlock.network", prison.NetworkNone.String())
	if _, err := prison.ParseNetwork(r.Isolation.Network); err != nil {
		return &promote.SettingError{Key: "airlock.network", Value: r.Isolation.Network, Want: "none or open"}
	}
	switch place := options.String("airlock.workspace", "inside"); place {
	case "inside", "gitdir":
		r.Inside = place == "inside"
	default:
		return &promote.SettingError{Key: "airlock.workspace", Value: place, Want: "inside or gitdir"}
	}
	if r.Backend = options.String("airlock.backend", "auto"); !session.IsBackend(r.Backend) {
		return &promote.SettingError{Key: "airlock.backend", Value: r.Backend, Want: "auto, native or docker"}
	}
	return nil
}

// leastMemory is what an engine wants for a container, and what a shell in a prison takes.
const leastMemory = 6 << 20

const (
	leastCPUs = 0.01    // what an engine wants
	leastPIDs = 8       // what git in a prison takes
	mostPIDs  = 1 << 22 // what a kernel has
)

// limits reads the limits, completed by the defaults.
func limits(c gitops.Config) (airlock.Limits, error) {
	l := prison.DefaultLimits
	var err error
	if l.Memory, err = promote.ReadSize(c, "airlock.memory", l.Memory); err != nil {
		return airlock.Limits{}, err
	}
	if l.Memory < leastMemory {
		return airlock.Limits{}, &promote.SettingError{Key: "airlock.memory", Value: c.String("airlock.memory", ""), Want: "enough for a prison; it takes " + policy.SizeText(leastMemory)}
	}
	if text := c.String("airlock.cpus", ""); text != "" {
		if l.CPUs, err = strconv.ParseFloat(text, 64); err != nil || !(l.CPUs >= leastCPUs && l.CPUs < 1<<16) {
			return airlock.Limits{}, &promote.SettingError{Key: "airlock.cpus", Value: text, Want: "a number of cores such as 2 or 1.5, at least 0.01"}
		}
	}
	if text := c.String("airlock.pids", ""); text != "" {
		if l.PIDs, err = strconv.Atoi(text); err != nil || l.PIDs < leastPIDs || l.PIDs > mostPIDs {
			return airlock.Limits{}, &promote.SettingError{Key: "airlock.pids", Value: text, Want: fmt.Sprintf("a number of processes from %d to %d", leastPIDs, mostPIDs)}
		}
	}
	return airlock.Limits(l), nil
}

// toolKey is the setting, given any number of times, of what a prison gets of the host's tools.
const toolKey = "airlock.tool"

// hostProgramFlags are the options for what a prison gets of the host besides the workspace.
func hostProgramFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "tool", Usage: "share the program or folder `[NAME=]PATH` read-only, below /tools, on the PATH"},
		&cli.StringFlag{Name: "rootfs", Usage: "take the system from the `folder`, in place of this host's; it must hold sh and git"},
	}
}

// hostPrograms reads these options, or the settings airlock.tool (any number) and airlock.rootfs.
func hostPrograms(c *cli.Context, s *session.Session) (tools []airlock.Tool, rootfs string, err error) {
	listed, err := listedValues(c, s, "tool", toolKey)
	if err != nil {
		return nil, "", err
	}
	for _, text := range listed {
		t, err := parseTool(text)
		if err == nil {
			err = outside(s, "--tool", t.Path)
		}
		if err != nil {
			return nil, "", err
		}
		if slices.ContainsFunc(tools, func(o airlock.Tool) bool { return o.Name == t.Name }) {
			return nil, "", ui.Usagef("--tool: two tools are called %q; say NAME=%s", t.Name, gitops.Escape(t.Path))
		}
		tools = append(tools, t)
	}
	root := s.Config.String("airlock.rootfs", "")
	if c.IsSet("rootfs") {
		root = c.String("rootfs")
	}
	if root == "" {
		return tools, "", nil
	}
	if rootfs, err = realPath(root); err != nil {
		return nil, "", ui.Usagef("--rootfs: %v", err)
	}
	if rootfs == "/" { // which it is without
		return tools, "", nil
	}
	return tools, rootfs, outside(s, "--rootfs", rootfs)
}

// outside refuses to share a path that the repository or its work tree is in, or that is in one of them: the agent would
// see what no snapshot took.
func outside(s *session.Session, option, path string) error {
	for _, own := range []string{s.Repo.Top, s.Repo.CommonDir} {
		if lies(path, own) || lies(own, path) {
			return ui.Usagef("%s: %s and the repository's %s are not apart; copy what is needed to another place",
				option, gitops.Escape(path), gitops.Escape(own))
		}
	}
	return nil
}

// lies reports whether a path is a folder or lies below it.
func lies(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// ofKernel are the folders whose files are no programs: nothing can be laid over them either.
var ofKernel = []string{"/dev", "/proc", "/sys"}

// parseTool reads [NAME=]PATH. A name cannot hold a slash, so neither can what is before "=".
func parseTool(text string) (t airlock.Tool, err error) {
	name, path, named := strings.Cut(text, "=")
	if !named || strings.Contains(name, "/") {
		path, name = text, filepath.Base(text)
	}
	t = airlock.Tool{Name: name}
	if t.Path, err = realPath(path); err != nil {
		if name, _, _ := strings.Cut(text, "="); named && strings.Contains(name, "/") {
			return t, ui.Usagef("--tool: %v; a tool's name has no slash", err)
		}
		return t, ui.Usagef("--tool: %v", err)
	}
	if t.Path == "/" {
		return t, ui.Usagef("--tool: / is this whole system, not a tool")
	}
	for _, folder := range ofKernel {
		if t.Path == folder || strings.HasPrefix(t.Path, folder+"/") && !strings.HasPrefix(t.Path, "/dev/shm/") {
			return t, ui.Usagef("--tool: %s is of the kernel's, not of programs", gitops.Escape(t.Path))
		}
	}
	if name == "" || name == "." || name == ".." || name == "/" || strings.ContainsAny(name, ":\n") {
		return t, ui.Usagef("--tool: %q is no name for a tool; say NAME=%s", name, path)
	}
	return t, executable(t.Path)
}

// executable refuses a file that nobody can execute.
func executable(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 == 0 {
		return environment.Advise(ui.Usagef("--tool: %s is not executable", gitops.Escape(path)), "chmod +x "+gitops.Pasteable(path))
	}
	return nil // what else may be wrong with it the backend says
}

// realPath is where a path leads, which may begin with the user's home.
func realPath(path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		path = filepath.Join(home, rest)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}
