package registries

import (
	"bytes"
	"fmt"
)

// debian returns the answers of Debian's hosts: the package standin, and an empty suite of security updates. Nothing is signed.
func debian() map[string]files {
	content := deb()
	const at = "pool/main/s/standin/standin_1.0_all.deb"
	packages := fmt.Sprintf("Package: standin\nVersion: 1.0\nArchitecture: all\nMaintainer: Standin <standin@standin.test>\nFilename: %s\nSize: %d\nSHA256: %s\nDescription: stand-in\n\n",
		at, len(content), sum256(content))
	return map[string]files{
		"deb.debian.org":      suite("/debian/", "stable", packages, map[string]string{"/debian/" + at: content}),
		"security.debian.org": suite("/debian-security/", "stable-security", "", nil),
	}
}

// suite adds the lists of a suite to the answers all.
func suite(top, name, packages string, all files) files {
	if all == nil {
		all = files{}
	}
	digests := ""
	for _, architecture := range []string{"amd64", "arm64", "all"} {
		list := "main/binary-" + architecture + "/Packages"
		all[top+"dists/"+name+"/"+list] = packages
		digests += fmt.Sprintf(" %s %d %s\n", sum256(packages), len(packages), list)
	}
	all[top+"dists/"+name+"/Release"] = fmt.Sprintf("Origin: Standin\nSuite: %s\nCodename: %s\nDate: Tue, 14 Nov 2023 22:13:20 UTC\nArchitectures: amd64 arm64 all\nComponents: main\nSHA256:\n%s",
		name, name, digests)
	return all
}

// deb returns a Debian package with one file.
func deb() string {
	var out bytes.Buffer
	out.WriteString("!<arch>\n")
	for _, f := range []file{
		{"debian-binary", "2.0\n"},
		{"control.tar.gz", tarball(file{"./control", "Package: standin\nVersion: 1.0\nArchitecture: all\nMaintainer: Standin <standin@standin.test>\nDescription: stand-in\n"})},
		{"data.tar.gz", tarball(file{"./usr/share/standin", "standin\n"})},
	} {
		fmt.Fprintf(&out, "%-16s%-12d%-6d%-6d%-8s%-10d`\n%s", f.name, made.Unix(), 0, 0, "100644", len(f.content), f.content)
		if len(f.content)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	return out.String()
}
