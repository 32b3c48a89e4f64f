//go:build js && wasm

// Command wasm is the engine as a WebAssembly module. It sets one global
// function, assent(request), which takes the text of a request and
// returns the text of its answer (docs/contracts/engine.md). The
// playground's worker calls it; so may a program that has started the
// module with Go's wasm_exec.js.
package main

import (
	"syscall/js"

	"github.com/assent-dev/assent/playground/engine"
)

func main() {
	js.Global().Set("assent", js.FuncOf(func(_ js.Value, args []js.Value) any {
		text := ""
		if len(args) == 1 && args[0].Type() == js.TypeString {
			text = args[0].String()
		}
		return string(engine.Run([]byte(text)))
	}))

	select {} // callbacks run as long as main does
}
