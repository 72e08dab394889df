package control

// Report is a message from a network to its holder.
type Report struct {
	// State, if set, is the state of the network as far as the network knows it.
	State *State `json:",omitempty"`
	// Answer requests an answer with [Order.Stated], as soon as other processes can read the state.
	Answer bool `json:",omitempty"`
	// Write requests that the holder writes Records, which may be empty. The holder answers with [Order.Written].
	Write   bool     `json:",omitempty"`
	Records []Record `json:",omitempty"`
	// Last is the answer to [Order.End]: no report comes after this one.
	Last bool `json:",omitempty"`
	// Authorities, if set, are for a successor of the network. The holder keeps them in memory only.
	Authorities *Authorities `json:",omitempty"`
	// Stale, if set, is the name of a credential whose value a server has refused. The holder reads the value again.
	Stale string `json:",omitempty"`
}

// Authorities are the authorities of a network, see package authority.
type Authorities struct {
	All []Authority `json:",omitempty"`
}

// Authority is a certificate and its key (DER).
type Authority struct{ Certificate, Key []byte }

// Order is a message from the holder of a network. The first one has Rules, Written and Authorities.
type Order struct {
	Rules   *Rules   `json:",omitempty"`
	Written *Written `json:",omitempty"`
	// Stated is the answer to [Report.Answer].
	Stated bool `json:",omitempty"`
	// End ends all connections. The network then hands over its last records, and answers with [Report.Last].
	End bool `json:",omitempty"`
	// Asked is the number of a question that the next state answers, see [Ask].
	Asked uint64 `json:",omitempty"`
	// Authorities are those that the network's predecessor has reported last, if there was one.
	Authorities *Authorities `json:",omitempty"`
	// Uses are the uses of credentials that the network's predecessor has reported last. The network continues these counts.
	Uses []CredentialUse `json:",omitempty"`
	// Values are the values of credentials by the credentials' names.
	Values map[string]string `json:",omitempty"`
}

// Written is the answer to [Report.Write].
type Written struct {
	// Records is how many of the records are in the ledger.
	Records int `json:",omitempty"`
	// Error is the reason why no more can be written; the network then makes no connection.
	Error string `json:",omitempty"`
}
