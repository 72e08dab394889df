// Command components lists what is in a program that Go has built, with the licence of each module: as CycloneDX on
// standard output, and the texts of the licences, which whoever passes the program on has to pass on with it, in a file.
//
//	go run ./scripts/components -version V -date RFC3339 -platform OS/ARCH -goroot DIR [-data NAME@VERSION=FOLDER] -texts FILE PROGRAM <LIST
//
// LIST has a line for each module, path and folder, as "go list" tells them. scripts/release runs it; no other program
// holds any of it.
package main
