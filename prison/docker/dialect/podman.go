package dialect

// Each function below reports one way in which an engine differs from Docker, named after what a plan must do about it. So far all of
// them are about Podman's service.

// FillsLate reports whether home and accounts can be put into a container only while it runs. Such an engine mounts its own account files
// over the prison's, and fills a new volume from the image when the container starts.
func (p *Platform) FillsLate() bool { return p.podman }

// EndsInput reports whether the input of a first process ends when any attached client disconnects.
func (p *Platform) EndsInput() bool { return p.podman }

// HidesBuilds reports whether the steps of a build run in containers that the API does not show. Such containers
// cannot be labelled. They continue when the build is cancelled, and the engine removes them itself.
func (p *Platform) HidesBuilds() bool { return p.podman }

// ReadsFilter reports whether the engine takes the system call filter as the path of a file on this machine. Other
// engines take it as text.
func (p *Platform) ReadsFilter() bool { return p.podman }

// MasksByOption reports whether the engine takes hidden paths as a security option, separated by colons. Other
// engines have a field for them.
func (p *Platform) MasksByOption() bool { return p.podman }

// FillsTmpfs reports whether the engine copies the content and the owner of the image's folder into a folder in memory, unless an option
// prevents that. The owner of such a folder cannot be set.
func (p *Platform) FillsTmpfs() bool { return p.podman }

// RaisesProcesses reports whether the engine by default requests a higher limit of processes for a uid than the engine itself may have.
func (p *Platform) RaisesProcesses() bool { return p.podman }

// SplitsMounts reports whether the engine reads a mount as a line of options that are separated by commas.
func (p *Platform) SplitsMounts() bool { return p.podman }
