package identity

import (
	"crypto/rand"
	"math/big"
)

// The lists contain common names, so that no combination points to one person. They use only ASCII letters, because
// they become login names and mail addresses without a change.
var (
	firstNames = []string{
		"Adam", "Aisha", "Alejandro", "Amara", "Ana", "Andrei", "Anna", "Arjun", "Ayumi", "Beatriz",
		"Bruno", "Carmen", "Chen", "Chiara", "Daniel", "David", "Diego", "Elena", "Emeka", "Emma",
		"Erik", "Fatima", "Felix", "Grace", "Hana", "Hassan", "Helena", "Hiroshi", "Ibrahim", "Ines",
		"Ingrid", "Ivan", "James", "Jonas", "Julia", "Kamal", "Karin", "Kofi", "Laura", "Leila",
		"Linh", "Lucas", "Maria", "Marta", "Mateo", "Mei", "Milan", "Nadia", "Nikhil", "Noah",
		"Olga", "Omar", "Paula", "Peter", "Priya", "Rosa", "Samir", "Sofia", "Tomas", "Wanjiru",
		"Yara", "Yusuf", "Zoe", "Zofia",
	}
	lastNames = []string{
		"Abebe", "Ahmed", "Almeida", "Andersen", "Banerjee", "Becker", "Bianchi", "Carvalho", "Castillo", "Chowdhury",
		"Costa", "Dubois", "Eriksson", "Fernandez", "Fischer", "Garcia", "Gupta", "Haddad", "Hansen", "Horvat",
		"Hughes", "Ibarra", "Ito", "Ivanov", "Jansen", "Johnson", "Kamau", "Keller", "Kimura", "Kovacs",
		"Kowalski", "Kumar", "Larsen", "Lindgren", "Lopez", "Mahmoud", "Martin", "Mendoza", "Mensah", "Moreau",
		"Murphy", "Nakamura", "Nguyen", "Novak", "Okafor", "Okonkwo", "Pereira", "Petrov", "Popescu", "Rahman",
		"Rossi", "Santos", "Schneider", "Sharma", "Silva", "Suzuki", "Tanaka", "Torres", "Tran", "Virtanen",
		"Walker", "Weber", "Yilmaz", "Zhang",
	}

	// mailDomains are reserved for documentation (RFC 2606, section 3). An address in them looks like a person's, but nobody can ever
	// register it, and mail to it reaches nobody. A free-mail domain would look even more ordinary, but its addresses belong to people.
	mailDomains = []string{"example.com", "example.net", "example.org"}

	hostWords = []string{"desktop", "devbox", "machine", "office", "station", "studio", "tower", "workstation"}

	// workspaceWords are neutral: none of them suggests isolation, an agent or this tool.
	workspaceWords = []string{
		"acorn", "amber", "anchor", "aspen", "atlas", "aurora", "basalt", "beacon", "birch", "bramble",
		"canyon", "cedar", "cobalt", "copper", "coral", "delta", "devspace", "draft", "ember", "falcon",
		"fern", "fjord", "garnet", "glacier", "granite", "harbor", "hazel", "heron", "indigo", "iris",
		"jasper", "juniper", "kestrel", "lagoon", "lantern", "lattice", "laurel", "linden", "lotus", "maple",
		"marble", "meadow", "mosaic", "nimbus", "oasis", "onyx", "opal", "orchard", "pebble", "pine",
		"prairie", "quartz", "raven", "ridge", "river", "saffron", "sierra", "spruce", "summit", "thistle",
		"tundra", "walnut", "willow", "workbench",
	}
)

// random returns a number from 0 to n-1. All numbers are equally likely. This package has no other source of randomness.
func random(n int) int {
	r, err := rand.Int(rand.Reader, big.NewInt(int64(n)))
	if err != nil {
		panic(err) // crypto/rand's reader never returns an error
	}
	return int(r.Int64())
}

// one returns an element of the list. All elements are equally likely.
func one(list []string) string { return list[random(len(list))] }
