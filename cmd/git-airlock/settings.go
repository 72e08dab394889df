package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/recipe"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// startRequest is what start and run were asked for.
type startRequest struct {
	backend   string
	image     string
	runtime   string
	isolation airlock.Isolation
	env       []string // as options say it
	usualEnv  []string // as settings do, which a prison that runs already is not asked for
	tools     []airlock.Tool
	rootfs    string
	inside    bool
	secrets   bool              // take them in
	selftest  bool              // refuse a prison that does not keep its promises
	overrides map[string]string // settings of promotion given as options
	command   []string
	forRun    bool // what is started is stopped by the last run in it

	recipe bool              // obey the repository's own description of its environment
	dotenv map[string]string // the user's .env file
	choice choice            // what the two come to

	backendOption, imageOption bool // the backend, or image or runtime, were given as options

	given []string // the options
	typed []string // the same with their values, to be typed again
}

// startFlags are the options of start and run.
func startFlags() []cli.Flag {
	return append(givenFlags(), []cli.Flag{
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

// request reads the options, and the configuration for what they leave open.
func (a *app) request(c *cli.Context, command []string) (startRequest, error) {
	r, err := a.requested(c, command)
	return r, ofOption(c, err)
}

func (a *app) requested(c *cli.Context, command []string) (r startRequest, err error) {
	options := a.layered(c)
	r = startRequest{command: command, image: options.String("airlock.image", ""), runtime: options.String("airlock.runtime", ""),
		backendOption: c.IsSet("backend"), imageOption: c.IsSet("image") || c.IsSet("runtime")}
	for _, f := range startFlags() {
		if name := f.Names()[0]; c.IsSet(name) {
			r.given = append(r.given, "--"+name)
			r.typed = append(r.typed, typed(c, f)...)
		}
	}
	if r.overrides, err = a.overrides(c); err != nil {
		return r, err
	}
	if err := r.switches(c, options); err != nil {
		return r, err
	}
	if r.dotenv, err = a.dotenv(); err != nil {
		return r, err
	}
	if r.env, err = environment("--env", c.StringSlice("env"), r.dotenv); err != nil {
		return r, err
	}
	if len(r.env) == 0 && a.config.Has(envKey) {
		if r.usualEnv, err = a.repo.Values(c.Context, envKey); err != nil {
			return r, err
		}
	}
	if err := a.given(c, &r); err != nil {
		return r, err
	}
	if r.isolation.Limits, err = limits(options); err != nil {
		return r, err
	}
	return r, r.choices(options)
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

// listed are the values of an option that may be given more than once, or those of its setting.
func (a *app) listed(c *cli.Context, option, key string) ([]string, error) {
	if asked := c.StringSlice(option); len(asked) > 0 || !a.config.Has(key) {
		return asked, nil
	}
	return a.repo.Values(c.Context, key)
}

// environment is what a prison's variables are beside those of its recipe, when they were others before: options leave nothing of those,
// settings what they do not name, or name without a value where there is none now.
func (r startRequest) environment(before []string) ([]string, error) {
	if len(r.env) > 0 {
		return r.env, nil
	}
	known := map[string]string{}
	for _, v := range before {
		name, value, _ := strings.Cut(v, "=")
		known[name] = value
	}
	maps.Copy(known, r.dotenv)
	env, err := environment(envKey, r.usualEnv, known)
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		delete(known, name)
	}
	kept := slices.DeleteFunc(slices.Clone(before), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		_, kept := known[name]
		return !kept
	})
	return append(kept, env...), err
}

// layered is the configuration with the options of the same names over it.
func (a *app) layered(c *cli.Context) gitops.Config {
	options := gitops.Config{}
	maps.Copy(options, a.config)
	for _, name := range []string{"backend", "image", "runtime", "network", "memory", "cpus", "pids"} {
		if c.IsSet(name) {
			options["airlock."+name] = c.String(name)
		}
	}
	return options
}

// overrides are the settings that hold for as long as the airlock lives: what "git -c" says of promotion at a start holds
// like an option.
func (a *app) overrides(c *cli.Context) (gitops.Config, error) {
	given, err := a.repo.CommandConfig(c.Context)
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

// switches reads what is on or off.
func (r *startRequest) switches(c *cli.Context, options gitops.Config) (err error) {
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
	r.selftest = read("airlock.selftest", false, "selftest")
	r.secrets = read("airlock.allowSecrets", false, allowSecretsFlag.Name)
	r.recipe = read("airlock.recipe", true, "no-recipe")
	return err
}

// choices reads what is one of a few words, or a name.
func (r *startRequest) choices(options gitops.Config) error {
	if r.image != "" && !docker.IsImageName(r.image) {
		return &promote.SettingError{Key: "airlock.image", Value: r.image, Want: "the name of an image, such as debian:12 or registry.example/owner/name:tag"}
	}
	r.isolation.Network = options.String("airlock.network", prison.NetworkNone.String())
	if _, err := prison.ParseNetwork(r.isolation.Network); err != nil {
		return &promote.SettingError{Key: "airlock.network", Value: r.isolation.Network, Want: "none or open"}
	}
	switch place := options.String("airlock.workspace", "inside"); place {
	case "inside", "gitdir":
		r.inside = place == "inside"
	default:
		return &promote.SettingError{Key: "airlock.workspace", Value: place, Want: "inside or gitdir"}
	}
	switch r.backend = options.String("airlock.backend", "auto"); r.backend {
	case "auto", "native", "docker":
	default:
		return &promote.SettingError{Key: "airlock.backend", Value: r.backend, Want: "auto, native or docker"}
	}
	return nil
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// environment completes NAME to NAME=VALUE from the caller's environment or their .env file. source is where they are asked for.
func environment(source string, asked []string, file map[string]string) ([]string, error) {
	var env []string
	for _, v := range asked {
		name, _, valued := strings.Cut(v, "=")
		if !envName.MatchString(name) {
			return nil, ui.Usagef("%s: %q is not the name of a variable", source, gitops.Escape(name))
		}
		if !valued {
			value, set := hostVariable(name, file)
			if !set {
				return nil, ui.Usagef("%s: %s is set neither here nor in %s", source, name, dotenvName)
			}
			v = name + "=" + value
		}
		env = append(env, v)
	}
	return env, nil
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
