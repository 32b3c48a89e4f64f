// Package mcp measures assent mcp gateway from the side of its clients. It compares an allowed
// call with the same call to the server itself and through another proxy. It also measures long
// lists, and the memory that a thousand waiting calls keep. Its tests fail if a result misses its
// limit (a bar), and do not run on every change: make -C bench mcp.
package mcp
