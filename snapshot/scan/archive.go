package scan

import (
	"bytes"
	"slices"
)

// archive is the signature of an archive format.
type archive struct {
	at    int
	magic string
}

// archives are common formats. Archives are not unpacked: this search runs before anything is trusted, and must not
// run decompressors on a stranger's bytes.
var archives = []archive{
	{0, "PK\x03\x04"}, {0, "PK\x05\x06"}, // zip, and so jar, whl, docx
	{0, "\x1f\x8b\x08"}, {4, "1AY&SY"}, {0, "\xfd7zXZ\x00"}, {0, "\x28\xb5\x2f\xfd"}, {0, "\x04\x22\x4d\x18"}, // gzip, bzip2, xz, zstd, lz4
	{0, "7z\xbc\xaf\x27\x1c"}, {0, "Rar!\x1a\x07"}, {0, "!<arch>\n"}, {0, "MSCF\x00"},
	{257, "ustar"},
}

// isArchive reports whether a file is an archive.
func isArchive(content []byte) bool {
	return slices.ContainsFunc(archives, func(a archive) bool { return len(content) > a.at && bytes.HasPrefix(content[a.at:], []byte(a.magic)) })
}
