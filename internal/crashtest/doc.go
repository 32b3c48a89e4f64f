// Package crashtest kills real `assent serve` processes with SIGKILL,
// again and again, at every step of an approval's life, on both stores
// and with two replicas on one PostgreSQL: never two permits, never a
// lost vote, nothing stuck, and a ledger that verifies each time. It
// kills `assent mcp gateway` between the approval of a call and its
// result, too: no call is sent twice, and the ledger tells the truth.
package crashtest
