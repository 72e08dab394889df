// Package promote turns an agent's commits into landed commits of the user's.
//
// An [Engine] makes promotion cycles for one airlock. A cycle reads the inner branch through an
// [Exporter], takes its objects into the quarantine, builds outer-ready commits (same tree, message and author
// date, the user's identity), lets the gate of package policy look at them, attaches their notes, makes them
// pending, and lands what nothing holds.
// Everything before the landing can be thrown away at any moment; the landing itself is
// one journaled step of package gitops. What waits, waits as pending, and a [Hold] says why.
//
// The ledger is the file that maps inner commits to outer ones. Refs say how much of it counts:
// its entries up to refs/airlock/<id>/promoted have landed, those up to pending are pending.
//
// What the gate said of commits, under which rules, is in the file verdicts.json; what the user decided about those that
// it holds, in decisions.json.
//
// [Daemon] makes a cycle whenever something changed inside or outside. Its lock, held for its life, is
// how others know that it lives.
package promote
