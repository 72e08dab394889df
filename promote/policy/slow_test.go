package policy

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// long lists cases that take seconds. A short run leaves them out.
var long = []string{"attributes, more than is read", "many deep paths elsewhere", "many deep paths below many files, each below the limit"}

// casesOf returns the cases of a rule that this run takes.
func casesOf(rule string) []ruleCase {
	cases := slices.Concat(ruleCases[rule], diskCases[rule])
	if testing.Short() {
		cases = slices.DeleteFunc(cases, func(c ruleCase) bool { return slices.Contains(long, c.name) })
	}
	return cases
}

// slowLines are patterns that git matches fast enough with one path, and slowLine is one of them.
var (
	slowLine  = strings.Repeat("**/a/", 3) + "b text\n"
	slowLines = strings.Repeat(slowLine, 16)
)

// slowCases are the cases of the rule slow-pattern.
var slowCases = []ruleCase{
	{name: "many folders in attributes", change: files{"src/.gitattributes": "*.c text\n" + strings.Repeat("**/a/", 12) + "b text\n"}, want: "hold", path: "src/.gitattributes"},
	{name: "quoted", change: files{".gitattributes": `"` + strings.Repeat(`\052\052/a/`, 12) + `b" text` + "\n"}, want: "hold", path: ".gitattributes"},
	{name: "many stars", change: files{".gitignore": "build/\n!" + strings.Repeat("*a", 25) + "\r\n"}, want: "hold", path: ".gitignore"},
	{name: "many lines", change: files{".gitignore": strings.Repeat("**/a/**/b/**/*.o\n", 40)}, want: "hold", path: ".gitignore"},
	{name: "another name of the file", change: files{"a/.GitIgnore": strings.Repeat("a/**/", 14)}, want: "hold", path: "a/.GitIgnore"},
	{name: "through a link", before: files{".gitignore": linkTo + "x"}, change: files{"x": strings.Repeat("a/**/", 14)}, want: "hold", path: "x"},
	{name: "one is added", before: files{".gitignore": strings.Repeat("*a", 9)}, change: files{".gitignore": strings.Repeat("*a", 9) + "\n*.o\n"}, want: "hold", path: ".gitignore"},
	{name: "one is removed", before: files{".gitignore": strings.Repeat("*a", 9) + "\n*.o\n"}, change: files{".gitignore": strings.Repeat("*a", 9)}},
	{name: "usual patterns", change: files{".gitignore": strings.Repeat("**/node_modules/**\n*.log\n/build/\n**/a/**/*.o\n", 50) + "report.[0-9]*.[0-9]*.[0-9]*.[0-9]*.json\n", ".gitattributes": "*.[ch] text\n**/x/** -diff\n"}},
	{name: "many deep paths", change: deepPaths(1600, files{".gitattributes": slowLines}), want: "hold", path: ".gitattributes"},
	{name: "many deep paths below several files", change: deepPaths(400, files{".gitattributes": slowLines, "a/.gitattributes": slowLines, "a/a/.gitattributes": slowLines, "a/a/a/.gitattributes": slowLines}), want: "hold", path: "a/a/a/.gitattributes"},
	{name: "many deep paths below many files, each below the limit", change: deepPaths(800, inEach(40, slowLine)), want: "hold", path: strings.Repeat("a/", 35) + ".gitattributes"},
	{name: "few deep paths below many files", change: deepPaths(20, inEach(40, slowLine))},
	{name: "usual patterns in many folders", change: beside(2000, ".gitignore", "*.log\n/build/\n**/a/**/*.o\nnode_modules/\n")},
	{name: "many deep paths elsewhere", change: deepPaths(1600, files{"src/.gitattributes": slowLines})},
	{name: "many deep paths and usual patterns", change: deepPaths(300, files{".gitignore": strings.Repeat("**/node_modules/**\n*.log\n/build/\n**/a/**/*.o\n", 50)})},
	{name: "another file", change: files{"ignore.txt": strings.Repeat("a/**/", 14)}},
	{name: "in another encoding", before: files{"a/.gitignore": "x\n"}, change: files{"a/.gitattributes": "*ignore working-tree-encoding=UTF-16\n"}, want: "hold", path: "a/.gitignore"},
}

// deepPaths adds files to some, each 120 folders deep.
func deepPaths(n int, some files) files {
	for i := range n {
		some[strings.Repeat("a/", 100)+strings.Repeat("b/", 20)+strconv.Itoa(i)] = "x"
	}
	return some
}

// inEach returns attribute files, one in each of some folders of the deep paths.
func inEach(folders int, content string) files {
	some := files{}
	for i := range folders {
		some[strings.Repeat("a/", i)+".gitattributes"] = content
	}
	return some
}

// beside returns files of a name in folders beside each other, each with ten other files.
func beside(folders int, name, content string) files {
	some := files{}
	for i := range folders {
		folder := strconv.Itoa(i) + "/"
		some[folder+name] = content
		for j := range 10 {
			some[folder+"src/"+strconv.Itoa(j)] = "x"
		}
	}
	return some
}
