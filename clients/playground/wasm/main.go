//go:build js && wasm

// Command wasm is the engine as a WebAssembly module. It defines one global function,
// assent(request). The function takes the text of a request and returns the text of the answer
// (docs/contracts/engine.md). The playground's worker calls it. Any other program that starts
// the module with Go's wasm_exec.js can call it too.
package main

import (
	"syscall/js"

	"github.com/assent-dev/assent/clients/playground/engine"
)

func main() {
	js.Global().Set("assent", js.FuncOf(func(_ js.Value, args []js.Value) any {
		text := ""
		if len(args) == 1 && args[0].Type() == js.TypeString {
			text = args[0].String()
		}
		return string(engine.Run([]byte(text)))
	}))

	select {} // callbacks work only while main runs
}
