// Package secrets finds keys and tokens in text, with the rules that the gitleaks project keeps.
//
// The rules are the own file of gitleaks (gitleaks.toml, version 8.30.1, under LICENSE.gitleaks), unchanged; what is
// here is the machine that applies them: words that a rule wants to see first, its expression, the
// entropy of what it found, and the lists of what is no secret.
//
// Gitleaks is a library as well. Measured at that version it brings 57 modules with it (archive formats, template
// and configuration languages, terminal styles), adds 6 MB to a program of 6.5 MB, and runs git
// itself. A gate that looks at hostile bytes should not hold a decompressor for each archive format there is.
//
// One of gitleaks' habits is left out, because whoever wrote the text is not trusted: a "gitleaks:allow" comment
// excuses nothing. What is in Base64 is decoded once and searched as well. Rules of our own, for what gitleaks has none
// for, are in own.toml.
//
// A rule's expression is held against the text as near to one of the rule's words as a match can reach, and not
// against all of it: Go's expressions take about a microsecond a byte, and most texts have such a word
// somewhere.
//
// To take newer rules in, replace gitleaks.toml by config/gitleaks.toml of a newer release, and run the tests.
package secrets
