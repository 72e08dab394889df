package checkpoint

import (
	"fmt"
	"strings"

	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// metaName is the name of a folder's list in the tree meta. No escaped name is equal to it.
const metaName = "%meta"

// treeNameOf returns the name in a git tree for the name of a file. Git refuses a tree with a name that some file system takes for .git,
// .gitmodules or a similar name (fsck.c, is_hfs_dotgit and is_ntfs_dotgit in path.c and utf8.c). All of these start with a dot, contain a
// tilde or a backslash, or have bytes outside of ASCII. So these bytes are written as %XX, and so are control characters and the percent
// sign.
func treeNameOf(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`%\~:"`, c) >= 0 || c == '.' && (i == 0 || i == len(name)-1) {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// fileNameOf returns the name of the file for a name in a git tree.
func fileNameOf(text string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '%' {
			if i+2 >= len(text) {
				return "", fmt.Errorf("name %q in a checkpoint", text)
			}
			if _, err := fmt.Sscanf(text[i+1:i+3], "%02X", &c); err != nil {
				return "", fmt.Errorf("name %q in a checkpoint: %w", text, err)
			}
			i += 2
		}
		b.WriteByte(c)
	}
	name := b.String()
	if err := files.CheckName(name); err != nil || treeNameOf(name) != text {
		return "", fmt.Errorf("name %q in a checkpoint", text)
	}
	return name, nil
}
