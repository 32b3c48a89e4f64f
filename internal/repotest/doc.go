// Package repotest holds the tests of the repository as a whole: which package may import which,
// what every package and file must have, licences, links, and documentation that is generated from
// code. It has no code of its own.
//
// Every check is a function from its input to complaints, so that another test can pass it a small
// wrong input: a check that can't fail checks nothing.
package repotest
