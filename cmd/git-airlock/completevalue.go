package main

import (
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/prison/recipe"
)

// value offers values of an option, by the word that stands for them in its help.
func (e *offer) value(o option) {
	for _, choice := range o.choices() {
		e.candidate(choice, "")
	}
	switch o.value {
	case "RULE[:PATH]":
		e.rules()
	case "REV", "COMMIT":
		e.all(e.known.pending())
	case "REF":
		e.all(e.known.inner())
	case "NAME[=VALUE]", "name":
		e.all(e.known.variables())
	case "image":
		e.all(e.known.images())
	case "runtime":
		e.all(e.known.runtimes())
	case "NAME[=VERSION][,manager=NAME]":
		e.languages()
	case "[NAME=]PATH":
		if i := strings.Index(e.word, "="); i >= 0 {
			e.stem, e.word = e.stem+e.word[:i+1], e.word[i+1:]
		}
		e.shell(shellFiles)
	case "pattern":
		e.shell(shellFiles)
	case "folder", "DIRECTORY":
		e.shell(shellFolders)
	case "command":
		e.shell(shellPrograms)
	}
}

func (e *offer) all(candidates []candidate) {
	for _, c := range candidates {
		e.candidate(c.text, c.about)
	}
}

// rules offers those that hold something first, with the paths they hold.
func (e *offer) rules() {
	held := e.known.held()
	e.all(held)
	for _, c := range acceptableRules() {
		if !slices.ContainsFunc(held, func(h candidate) bool { return h.text == c.text }) {
			e.candidate(c.text, c.about)
		}
	}
}

// languages offers those that a recipe can say most about, then the managers of the one that was chosen.
func (e *offer) languages() {
	chosen, rest, more := strings.Cut(e.word, ",")
	if !more {
		for _, name := range recipe.KnownLanguages() {
			e.candidate(name, "")
		}
		e.candidate("none", "no language")
		return
	}
	name, _, _ := strings.Cut(chosen, "=")
	e.stem, e.word = e.stem+chosen+",", rest
	for _, manager := range recipe.Managers(name) {
		e.candidate("manager="+manager, "")
	}
}
