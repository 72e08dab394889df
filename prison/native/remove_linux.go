package native

import "os"

func removeTree(path string) error { return os.RemoveAll(path) }
