package walls

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroups describes the control group hierarchies that this process can see.
type cgroups struct {
	legacy map[string]string // version 1: for each controller, the folder of this process's group
	root   string            // version 2: the mount point, or empty if version 2 is not mounted
	own    string            // version 2: the folder of this process's group
}

// unifiedGroup is a version 2 group to create.
type unifiedGroup struct {
	dir         string
	controllers []string
}

// cgroupMounts reads cgroups(7) from /proc/self: which hierarchies are mounted, and where we are in them.
func cgroupMounts() cgroups {
	c := cgroups{legacy: map[string]string{}}
	positions := cgroupPositions()
	mountinfo, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mountinfo)) {
		before, after, found := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !found || len(fields) < 5 || len(kind) < 3 {
			continue
		}
		root, point := fields[3], fields[4]
		switch kind[0] {
		case "cgroup2":
			c.root, c.own = point, inside(point, root, positions[""])
		case "cgroup":
			for _, controller := range strings.Split(kind[2], ",") {
				if position, ok := positions[controller]; ok {
					c.legacy[controller] = inside(point, root, position)
				}
			}
		}
	}
	return c
}

// cgroupPositions returns the path of this process's group for each controller. Version 2 has an empty controller name.
func cgroupPositions() map[string]string {
	positions := map[string]string{}
	content, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(content)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) != 3 {
			continue
		}
		for _, controller := range strings.Split(fields[1], ",") {
			positions[controller] = fields[2]
		}
	}
	return positions
}

// inside returns the path of a group below a mount that shows the part of the hierarchy below root. If the group is
// not in that part, inside returns the mount point.
func inside(point, root, position string) string {
	rel, err := filepath.Rel(root, position)
	if err != nil || !filepath.IsLocal(rel) {
		return point
	}
	return filepath.Join(point, rel)
}

// unified finds the nearest version 2 group at or above this process in which it may create another group with controllers. offers
// returns the controllers that the children of a group can have. A group with processes gives its children no controllers ("no internal
// processes"), so this process's own group is used only if it is the root. Moving a process also needs write access to cgroup.procs of
// the common ancestor.
func (c cgroups) unified(name string, offers func(dir string) []string) *unifiedGroup {
	if c.root == "" {
		return nil
	}
	dir := c.own
	if dir != c.root {
		dir = filepath.Dir(dir)
	}
	for {
		if unix.Access(dir, unix.W_OK) == nil && unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) == nil {
			if controllers := offers(dir); len(controllers) > 0 {
				return &unifiedGroup{filepath.Join(dir, name), controllers}
			}
		}
		if dir == c.root || len(dir) <= 1 {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

const (
	ownControllers   = "cgroup.controllers"
	childControllers = "cgroup.subtree_control"
)

// wantedControllers are the controllers that enforce [prison.Limits].
var wantedControllers = []string{"memory", "pids", "cpu"}

func groupWords(dir, file string) []string {
	content, _ := os.ReadFile(filepath.Join(dir, file))
	return strings.Fields(string(content))
}

// enableControllers enables the wanted controllers for the children of a group, and returns all that are enabled then.
func enableControllers(dir string) []string {
	for _, controller := range wantedControllers {
		if !slices.Contains(groupWords(dir, childControllers), controller) {
			// the result below shows which failed
			os.WriteFile(filepath.Join(dir, childControllers), []byte("+"+controller), 0) //nolint:errcheck
		}
	}
	return groupWords(dir, childControllers)
}

// predictControllers returns the controllers that [enableControllers] would return, but changes nothing.
func predictControllers(dir string) []string {
	has := groupWords(dir, childControllers)
	kind := groupWords(dir, "cgroup.type") // the root group has no such file, and may contain processes
	mayAsk := len(kind) == 0 || slices.Equal(kind, []string{"domain"}) && len(members(dir)) == 0
	if !mayAsk || unix.Access(filepath.Join(dir, childControllers), unix.W_OK) != nil {
		return has
	}
	for _, controller := range groupWords(dir, ownControllers) {
		if slices.Contains(wantedControllers, controller) && !slices.Contains(has, controller) {
			has = append(has, controller)
		}
	}
	return has
}
