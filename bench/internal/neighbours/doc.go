// Package neighbours puts one tenant's worst traffic on a real assent
// server, and measures what another tenant feels of it. bench runs it
// with bars; its own test runs a small one.
//
// It reaches nothing but this machine, and ends: how much it sends, and
// for how long, is bounded.
package neighbours
