// Package layer contains chat clients that wrap others and handle requests to the user and
// their answers: they match answers to requests, hide requests that need no answer, and
// remember standing approvals.
//
// Layers can be combined. From the outside in: Standing, Binding, Bypass, InvocableBypass, the
// loop that calls functions, the model. A layer keeps its state as JSON in the thread of the
// options (agent.Options.Thread), so any process can continue it. Only one run may use a thread
// at a time. For the loop of package agent, which matches answers itself, only Standing is
// useful. Binding and Bypass are for loops of package compat and for services that send
// requests. Layers don't change the messages and options that they get.
//
// Layers fail closed: records take precedence over messages, and each request is answered once.
// Package compat has the same layers with the behavior of the .NET library, including its
// security holes.
package layer
