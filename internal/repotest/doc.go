// Package repotest holds the tests that keep the repository honest:
// which package may import what, what every package and file owes,
// licences, links, and documentation that is generated from code. It
// has no code of its own.
//
// Every check is a function from what it looks at to the complaints it
// has, so that a test beside it can show it a small thing that is
// wrong: a check that can't fail checks nothing.
package repotest
