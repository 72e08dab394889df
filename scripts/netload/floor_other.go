//go:build !linux

package main

import "errors"

func floor(string, int64) error { return errors.New("only Linux has such interfaces") }
