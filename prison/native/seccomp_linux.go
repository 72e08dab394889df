package native

// installFilter is filled in below.
func installFilter() error { return nil }
