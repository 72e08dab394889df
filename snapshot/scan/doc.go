// Package scan looks for secrets in what a snapshot would take in.
//
// Texts are searched by a [Detector], files are judged by their names as well: a key store is one whatever its
// bytes say. What is found is ranked by how sure it is and how much would be given away; a finding names the
// place and never holds the secret.
//
// # Rules
//
// The same secrets are searched on the way in and on the way out, so there is one set of rules, in
// promote/policy/secrets. This package may not import promote, nor the other way round, and a package
// for both would hold one function. So the command line passes the rules in, as a [Detector].
//
// # Severity
//
// A secret with a form of its own, or in a file made for secrets, is high; a value beside a word like
// "password" is medium. Among tests, examples and documentation, in templates and in third-party code
// each is one lower: a key under testdata is never high. A file that an ignore file names, and that is
// committed all the same, is one higher, since somebody meant to keep it out. Exceptions are settings
// of the user's with a reason; a recipe, which the agent can write as well, has no say.
//
// # At a start
//
// The search runs beside the snapshot and the prison, and its verdict is awaited before a byte goes
// in. The rules that refuse cost 10 ns of processor time a byte. Those that guess cost as much again
// and refuse nothing, so a start gives them the first 16 MB. Nothing is cached.
//
// # What is found
//
// The newest commits of eleven public repositories, whose owners know what they published
// (scripts/alarms --scan):
//
//	        age  libgit2  lazygit  git-town  fzf  jq  symfony   babel    git    vim    tldr
//	files    98   15,604    2,320     4,530  160  427   13,139  27,674  4,843  8,521  38,490
//	high      2        0        0         0    0    0        0       0      0      0       0
//	medium   28        0        0         2    0    0       15       2      3      6       0
//	low      14        6        0         2    0    0       27       6     10      1       0
//
// One of eleven would be refused: age, which is about keys. If keys among tests and in third-party
// code were high, it would be four. Of 74 planted secrets 71 are found. The others are a password in
// prose, one in an archive, and a token in Base64 twice over. Base64 is decoded once, and text in it
// is searched for secrets with a form of their own.
//
// Archives are named, and not opened: to unpack is to run decompressors on a stranger's bytes before
// anything was checked, and bounded ones would still miss an archive within an archive.
package scan
