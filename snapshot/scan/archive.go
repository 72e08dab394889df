package scan

import "bytes"

// archive is how a kind of file that holds other files begins.
type archive struct {
	at    int
	magic string
}

// archives are the kinds that people commit. None is looked into: to unpack what a stranger packed is no business of a
// search that goes on before anything was trusted.
var archives = []archive{
	{0, "PK\x03\x04"}, {0, "PK\x05\x06"}, // zip, and so jar, whl, docx
	{0, "\x1f\x8b\x08"}, {4, "1AY&SY"}, {0, "\xfd7zXZ\x00"}, {0, "\x28\xb5\x2f\xfd"}, {0, "\x04\x22\x4d\x18"}, // gzip, bzip2, xz, zstd, lz4
	{0, "7z\xbc\xaf\x27\x1c"}, {0, "Rar!\x1a\x07"}, {0, "!<arch>\n"}, {0, "MSCF\x00"},
	{257, "ustar"},
}

// isArchive reports whether a content holds files of its own.
func isArchive(content []byte) bool {
	for _, a := range archives {
		if len(content) > a.at && bytes.HasPrefix(content[a.at:], []byte(a.magic)) {
			return true
		}
	}
	return false
}
