//go:build wasip1

// Command wasm is the engine as a WebAssembly module for programs in
// other languages: it checks files and decides calls without a server
// (docs/contracts/engine.md). It is a reactor of WASI preview 1: its host
// calls _initialize once, then any export, one at a time.
//
// A host writes an input at the address that assent_input returns, calls
// one of the others, and finds the answer at assent_output if that call
// returned. After a trap the module can't be used any more, and its host
// has to deny.
package main

import (
	"encoding/json"
	"unsafe"

	"github.com/assent-dev/assent/clients/playground/engine"
)

// The host is on one thread, and so are its buffers.
var (
	input    []byte
	output   []byte
	deciders = map[uint32]*engine.Decider{}
	opened   uint32
)

func main() {} // a reactor has none

// mostInput bounds an input, in bytes: a request, and what escapes add.
const mostInput = 64 << 20

// assentInput returns the address for an input of a size in bytes, or 0 if the
// size is not allowed.
//
//go:wasmexport assent_input
func assentInput(size uint32) unsafe.Pointer {
	if size > mostInput {
		return nil
	}
	input = make([]byte, size+1) // an empty input has an address too
	return unsafe.Pointer(&input[0])
}

// assentOutput returns the address of the answer to the last call.
//
//go:wasmexport assent_output
func assentOutput() unsafe.Pointer { return unsafe.Pointer(&output[0]) }

// assentRun answers the request in the input.
//
//go:wasmexport assent_run
func assentRun() uint32 { return answer(engine.RunLocal(taken())) }

// assentOpen compiles the plan of the request in the input. Its answer
// has a number as its member decider if that succeeded.
//
//go:wasmexport assent_open
func assentOpen() uint32 {
	d, said := engine.Open(taken())
	text := said.JSON(engine.Lint)
	if d == nil {
		return answer(text)
	}
	opened++
	deciders[opened] = d
	number, err := json.Marshal(opened)
	if err != nil {
		panic(err) // no number is unwritable
	}

	text = append(text[:len(text)-1], `,"decider":`...)
	return answer(append(append(text, number...), '}'))
}

// assentDecide decides the call in the input. The answer is the
// decision. An empty answer means deny.
//
//go:wasmexport assent_decide
func assentDecide(decider uint32) uint32 {
	call := taken()
	d := deciders[decider]
	if d == nil {
		return answer(nil)
	}
	text, err := d.Decide(call)
	if err != nil {
		return answer(nil)
	}

	return answer(text)
}

// assentClose forgets a decider.
//
//go:wasmexport assent_close
func assentClose(decider uint32) { delete(deciders, decider) }

// taken returns the input, which is used once.
func taken() []byte {
	text := input
	input = nil
	if len(text) == 0 {
		return nil
	}
	return text[:len(text)-1]
}

// answer keeps an answer until the host has read it.
func answer(text []byte) uint32 {
	output = append(text, 0)
	return uint32(len(text))
}
