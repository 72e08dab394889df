// Package request reads the options and settings of start, run and init into a request to the workflow.
package request

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/inbound"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/network"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/image"
	"github.com/git-airlock/git-airlock/prison/recipe"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/review"
)

// Flags returns the options of start and run.
func Flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "tool", Usage: "share the program or folder `[NAME=]PATH` read-only as /tools/NAME, which is put on the PATH"},
		&cli.StringFlag{Name: "rootfs", Usage: "use the system in the `folder` instead of this host's; it must contain sh and git"},
		&cli.StringFlag{Name: "backend", Usage: "how the prison is made: `auto|native|docker`"},
		&cli.StringFlag{Name: "image", Usage: "container `image` with git and a shell, for the docker backend"},
		&cli.StringFlag{Name: "runtime", Usage: "container `runtime`, such as runsc; default: the engine's default"},
		&cli.StringFlag{Name: "network", Usage: "network of the prison: `none|allowlist|open`"},
		&cli.StringSliceFlag{Name: "allow", Usage: "let the prison reach what the `rule` is about, such as registry.npmjs.org or @npm; with --network allowlist"},
		&cli.StringSliceFlag{Name: "deny", Usage: "refuse what the `rule` is about, whatever other rules allow"},
		&cli.StringFlag{Name: "memory", Usage: "memory of the prison, such as `4g`"},
		&cli.StringFlag{Name: "cpus", Usage: "`number` of processor cores in the prison"},
		&cli.StringFlag{Name: "pids", Usage: "`number` of processes and threads in the prison"},
		&cli.StringSliceFlag{Name: "env", KeepSpace: true, Usage: "pass the variable `NAME[=VALUE]` into the prison; no other variable is passed; an empty value drops those of earlier starts"},
		&cli.BoolFlag{Name: inbound.AllowSecretsFlag, Usage: "take a snapshot even if it contains secrets"},
		&cli.BoolFlag{Name: "no-recipe", Usage: "ignore " + recipe.FileName + " and the files that can replace it"},
		&cli.BoolFlag{Name: "selftest", Usage: "run the selftest first, and refuse a prison that fails it"},
		EngineFlag,
		&cli.StringFlag{Name: "review", Usage: "which commits wait for your review: `off|land|push`, so none, each before it lands, or each before a push"},
		&cli.BoolFlag{Name: "no-auto-land", Usage: "the same as --review land"},
	}
}

// EngineFlag is the option --engine, see [Engine].
var EngineFlag = &cli.StringFlag{Name: "engine", Usage: "how commits are carried to the outer branch: `tree|patch`"}

// Excluded returns the options that do not go together with a value of another option.
func Excluded(option, value string) []string {
	b := prisons.Named(value)
	switch {
	case option == "network" && value != prison.NetworkAllowlist.String():
		return []string{"allow"}
	case option != "backend" || b == nil:
		return nil
	case b.Traits("").Images:
		return []string{"tool", "rootfs"}
	}
	return []string{"image", "runtime"}
}

// Of reads the options, and the configuration for options that are not set. command is the command to launch. With an agent, also one of
// an earlier start, the network is an allowlist unless an option or a setting says otherwise, and has the rules that the agent needs.
func Of(c *cli.Context, s *session.Session, command []string, agent *session.Agent) (session.Request, error) {
	r, err := read(c, s, command, agent)
	return r, ofOption(c, err)
}

func read(c *cli.Context, s *session.Session, command []string, agent *session.Agent) (r session.Request, err error) {
	fixed, err := overrides(c, s)
	if err != nil {
		return r, err
	}
	earlier := s.Earlier()
	options := layered(c, s.Config, earlier.Settings, fixed)
	sayKept(s, earlier.Settings, fixed)
	if !options.Has("airlock.network") && (agent != nil || earlier.Rules.Agent != "") {
		options["airlock.network"] = prison.NetworkAllowlist.String()
	}
	r = session.Request{Command: command, Overrides: fixed, Image: options.String("airlock.image", ""), Runtime: options.String("airlock.runtime", ""),
		BackendGiven: c.IsSet("backend"), ImageGiven: c.IsSet("image") || c.IsSet("runtime")}
	for _, f := range Flags() {
		if name := f.Names()[0]; c.IsSet(name) {
			r.Given = append(r.Given, "--"+name)
			r.Typed = append(r.Typed, Typed(c, f)...)
		}
	}
	if err := readSwitches(c, options, &r); err != nil {
		return r, err
	}
	if r.Dotenv, err = environment.Dotenv(s.Repo.Top); err != nil {
		return r, err
	}
	r.Rules = airlock.Rules{Allow: ruleOption(c, "allow"), Deny: ruleOption(c, "deny")}
	r.EnvGiven = c.IsSet("env")
	if r.Env, err = session.OptionVariables(c.StringSlice("env"), r.Dotenv); err != nil {
		return r, err
	}
	if !r.EnvGiven && s.Config.Has(session.EnvKey) {
		if r.UsualEnv, err = s.Repo.Values(c.Context, session.EnvKey); err != nil {
			return r, err
		}
	}
	if r.Tools, r.Rootfs, err = hostPrograms(c, s); err != nil {
		return r, err
	}
	if r.Isolation.Limits, err = limits(options); err != nil {
		return r, err
	}
	if err := readChoices(options, &r); err != nil {
		return r, err
	}
	if r.Agent = agent; agent != nil && r.Isolation.Network == prison.NetworkAllowlist.String() {
		r.Rules.Agent, r.Rules.Needs, r.Rules.Keys = agent.Name, agent.Allow, keysOf(agent, r)
		r.Rules.Unneeded = agent.Unneeded
		if len(r.Rules.Keys) == 0 && !slices.ContainsFunc(agent.Keys, func(key string) bool { return passes(r, key) }) {
			r.Rules.Login = network.LoginOf(agent.Login, agent.Program, agent.Keys)
		}
	}
	return r, nil
}

// Typed returns an option as words for a shell. It leaves out the values of variables, which can be secrets.
func Typed(c *cli.Context, f cli.Flag) (words []string) {
	name := f.Names()[0]
	switch f.(type) {
	case *cli.BoolFlag:
		if !c.Bool(name) {
			return []string{"--" + name + "=false"}
		}
		return []string{"--" + name}
	case *cli.StringSliceFlag:
		for _, value := range c.StringSlice(name) {
			if variable, _, valued := strings.Cut(value, "="); valued && name == "env" {
				words = append(words, "--env", gitops.Text(variable).String()+"=VALUE")
				continue
			}
			words = append(words, "--"+name, gitops.Pasteable(value))
		}
		return words
	}
	return []string{"--" + name, gitops.Pasteable(fmt.Sprint(c.Value(name)))}
}

// ruleOption returns the rules of an option, and nil if it was not given. As with settings, an empty value removes those before it,
// which are those of earlier starts.
func ruleOption(c *cli.Context, name string) []string {
	if !c.IsSet(name) {
		return nil
	}
	return append([]string{}, slices.DeleteFunc(c.StringSlice(name), func(rule string) bool { return rule == "" })...)
}

// keptOptions are the options of the isolation that an airlock keeps until another start has new ones.
var keptOptions = []string{"network", "memory", "cpus", "pids"}

// layered returns the configuration with the values that win over it: the isolation that earlier starts of the airlock here have fixed,
// then the one that this start fixes, and the options of the backend.
func layered(c *cli.Context, config, earlier, fixed gitops.Config) gitops.Config {
	options := gitops.Config{}
	maps.Copy(options, config)
	for _, name := range keptOptions {
		key := "airlock." + name
		if value, kept := earlier[key]; kept {
			options[key] = value
		}
		if value, now := fixed[key]; now {
			options[key] = value
		}
	}
	for _, name := range []string{"backend", "image", "runtime"} {
		if c.IsSet(name) {
			options["airlock."+name] = c.String(name)
		}
	}
	return options
}

// sayKept reports the options of earlier starts that win over settings with other values.
func sayKept(s *session.Session, earlier, fixed gitops.Config) {
	for _, name := range keptOptions {
		key := "airlock." + name
		kept, now := earlier.String(key, ""), s.Config.String(key, "")
		if earlier.Has(key) && s.Config.Has(key) && !fixed.Has(key) && kept != now {
			s.Report.Say("%s is %s, as an earlier start was told; the setting is %s", key, gitops.Text(kept), gitops.Text(now))
			s.Report.Hint("git airlock start --" + name + " " + gitops.Pasteable(now))
		}
	}
}

// overrides returns the settings that are fixed until the airlock is cleared, or another start fixes them anew: those of "git -c" at a
// start, and options.
func overrides(c *cli.Context, s *session.Session) (gitops.Config, error) {
	given, err := s.Repo.CommandConfig(c.Context)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(given, func(key, _ string) bool { return !strings.HasPrefix(key, "airlock.") || key == session.EnvKey })
	for key := range given {
		if !airlock.IsMany(key) {
			continue
		}
		values, err := s.Repo.CommandValues(c.Context, key)
		if err != nil {
			return nil, err
		}
		given[key] = airlock.JoinValues(values)
	}
	if err := network.DropPassword(given); err != nil {
		return nil, err
	}
	for option, key := range map[string]string{"no-auto-land": "airlock.autoland", "no-recipe": "airlock.recipe"} {
		if c.IsSet(option) {
			given[key] = strconv.FormatBool(!c.Bool(option))
		}
	}
	if c.IsSet("review") {
		mode, err := review.ParseMode(c.String("review"))
		if err != nil {
			return nil, ui.Usagef("--review: %s", err)
		}
		// Of two options that contradict each other, the laxer one could land what the user wanted to see first.
		if c.IsSet("no-auto-land") && c.Bool("no-auto-land") != (mode == review.Land) {
			return nil, ui.Usagef("--review %s and --no-auto-land=%t exclude each other", mode, c.Bool("no-auto-land"))
		}
		// The older setting must not contradict the option.
		given["airlock.review"], given["airlock.autoland"] = string(mode), strconv.FormatBool(mode != review.Land)
	}
	for _, name := range keptOptions {
		if c.IsSet(name) {
			given["airlock."+name] = c.String(name)
		}
	}
	engine, err := Engine(c)
	if engine != "" {
		given["airlock.engine"] = engine
	}
	return given, err
}

func readSwitches(c *cli.Context, options gitops.Config, r *session.Request) (err error) {
	read := func(key string, otherwise bool, option string) bool {
		if c.IsSet(option) {
			return c.Bool(option) != otherwise // the option of a setting that is on by default begins with "--no-"
		}
		on, broken := options.Bool(key, otherwise)
		err = cmp.Or(err, broken)
		return on
	}
	r.Selftest = read("airlock.selftest", false, "selftest")
	r.AllowSecrets = read("airlock.allowSecrets", false, inbound.AllowSecretsFlag)
	r.Recipe = read("airlock.recipe", true, "no-recipe")
	return err
}

// readChoices reads the options that are a name or one of a few words.
func readChoices(options gitops.Config, r *session.Request) error {
	if r.Image != "" && !image.IsName(r.Image) {
		return &gitops.SettingError{Key: "airlock.image", Value: r.Image, Want: "the name of an image, such as debian:12 or registry.example/owner/name:tag"}
	}
	r.Isolation.Network = options.String("airlock.network", prison.NetworkNone.String())
	if _, err := prison.ParseNetwork(r.Isolation.Network); err != nil {
		return &gitops.SettingError{Key: "airlock.network", Value: r.Isolation.Network, Want: "none, allowlist or open"}
	}
	if len(r.Rules.Allow) > 0 && r.Isolation.Network != prison.NetworkAllowlist.String() {
		return ui.Usagef("--allow: the network %s takes no such rule; use --network allowlist", r.Isolation.Network)
	}
	switch place := options.String("airlock.workspace", "inside"); place {
	case "inside", "gitdir":
		r.Inside = place == "inside"
	default:
		return &gitops.SettingError{Key: "airlock.workspace", Value: place, Want: "inside or gitdir"}
	}
	if r.Backend = options.String("airlock.backend", "auto"); !prisons.IsBackend(r.Backend) {
		return &gitops.SettingError{Key: "airlock.backend", Value: r.Backend, Want: "auto, native or docker"}
	}
	return nil
}

// leastMemory is the minimum in bytes that engines require for a container, and that a shell in a prison needs.
const leastMemory = 6 << 20

const (
	leastCPUs = 0.01    // required by engines
	mostCPUs  = 1 << 16 // more than any machine has
	leastPIDs = 8       // needed by git in a prison
	mostPIDs  = 1 << 22 // the maximum of a kernel
)

// limits reads the limits. Missing ones get their defaults.
func limits(c gitops.Config) (airlock.Limits, error) {
	l := prison.DefaultLimits
	var err error
	if l.Memory, err = policy.ReadSize(c, "airlock.memory", l.Memory); err != nil {
		return airlock.Limits{}, err
	}
	if l.Memory < leastMemory {
		return airlock.Limits{}, &gitops.SettingError{Key: "airlock.memory", Value: c.String("airlock.memory", ""), Want: "enough for a prison, which needs " + policy.SizeText(leastMemory)}
	}
	if text := c.String("airlock.cpus", ""); text != "" {
		if l.CPUs, err = strconv.ParseFloat(text, 64); err != nil || !(l.CPUs >= leastCPUs && l.CPUs < mostCPUs) {
			return airlock.Limits{}, &gitops.SettingError{Key: "airlock.cpus", Value: text, Want: fmt.Sprintf("a number of cores such as 2 or 1.5, at least %g and below %d", leastCPUs, mostCPUs)}
		}
	}
	if text := c.String("airlock.pids", ""); text != "" {
		if l.PIDs, err = strconv.Atoi(text); err != nil || l.PIDs < leastPIDs || l.PIDs > mostPIDs {
			return airlock.Limits{}, &gitops.SettingError{Key: "airlock.pids", Value: text, Want: fmt.Sprintf("a number of processes from %d to %d", leastPIDs, mostPIDs)}
		}
	}
	return airlock.Limits(l), nil
}

// toolKey is the setting of shared tools. It can have several values.
const toolKey = "airlock.tool"

// hostPrograms reads the options that share programs of the host, or the settings airlock.tool and airlock.rootfs.
func hostPrograms(c *cli.Context, s *session.Session) (tools []airlock.Tool, rootfs string, err error) {
	listed := c.StringSlice("tool")
	if len(listed) == 0 && s.Config.Has(toolKey) {
		if listed, err = s.Repo.Values(c.Context, toolKey); err != nil {
			return nil, "", err
		}
	}
	tool := "--tool"
	if !c.IsSet("tool") {
		tool = "setting " + toolKey
	}
	for _, text := range listed {
		read, err := environment.ParseTool(text)
		if err == nil {
			err = environment.Apart(s.Repo, read.Path)
		}
		if err != nil {
			return nil, "", ofPath(tool, err)
		}
		t := airlock.Tool(read)
		if slices.ContainsFunc(tools, func(o airlock.Tool) bool { return o.Name == t.Name }) {
			return nil, "", ui.Usagef("%s: two tools are called %q; use NAME=%s to give one another name", tool, t.Name, gitops.Text(t.Path))
		}
		tools = append(tools, t)
	}
	option, root := "setting airlock.rootfs", s.Config.String("airlock.rootfs", "")
	if c.IsSet("rootfs") {
		option, root = "--rootfs", c.String("rootfs")
	}
	if root == "" {
		return tools, "", nil
	}
	if rootfs, err = environment.RealPath(root); err != nil {
		return nil, "", ofPath(option, err)
	}
	if rootfs == "/" { // the default, which a container cannot have if an option asks for it
		if c.IsSet("rootfs") {
			return tools, rootfs, nil
		}
		return tools, "", nil
	}
	return tools, rootfs, ofPath(option, environment.Apart(s.Repo, rootfs))
}

// ofPath is an error about the path of an option or setting.
func ofPath(option string, err error) error {
	if err == nil {
		return nil
	}
	wrong := ui.Usagef("%s: %v", option, err)
	if advised, ok := errors.AsType[*environment.Advised](err); ok {
		return environment.Advise(wrong, advised.Next...)
	}
	return wrong
}

// ofOption converts an error about a setting to an error about the option, if the option was given.
func ofOption(c *cli.Context, err error) error {
	if setting, ok := errors.AsType[*gitops.SettingError](err); ok {
		if name := strings.TrimPrefix(setting.Key, "airlock."); c.IsSet(name) {
			return ui.Usagef("--%s: %q is not %s", name, gitops.Text(setting.Value), setting.Want)
		}
	}
	return err
}

// Engine returns the value of --engine, empty for none.
func Engine(c *cli.Context) (string, error) {
	engine := c.String(EngineFlag.Name)
	if engine != "" && !promote.IsEngine(engine) {
		return "", ui.Usagef("--%s: %q is not tree or patch", EngineFlag.Name, gitops.Text(engine))
	}
	return engine, nil
}
