//go:build linux

package native

// UserNetworks returns the names of the programs for open networks that are installed.
func UserNetworks() (names []string) {
	found := findUserNetworks()
	for _, n := range userNetworks {
		if found[n.name] != "" {
			names = append(names, n.name)
		}
	}
	return names
}

// OnlyUserNetwork makes this process know no other one, until restored.
func OnlyUserNetwork(name string) (restore func()) {
	all := userNetworks
	userNetworks = nil
	for _, n := range all {
		if n.name == name {
			userNetworks = append(userNetworks, n)
		}
	}
	return func() { userNetworks = all }
}

// AppArmorProfile is apparmorProfile.
var AppArmorProfile = apparmorProfile

// LooksAlive reports whether the process is taken for one that runs.
func LooksAlive(pid int) bool { return identify(pid).alive() }
