// Package layer holds chat clients that go around others and treat
// requests to the user and their answers: they bind answers to what was
// asked, keep away requests that nobody needs to answer, and remember
// standing approvals.
//
// Layers compose. From the outside in: Standing, Binding, Bypass,
// InvocableBypass, the loop that calls functions, the model. What a
// layer remembers is kept in the thread of the options
// (agent.Options.Thread) as JSON, so any process can go on with it; a
// thread serves one run at a time. Around the loop of package agent,
// which binds answers itself, Standing is the layer to have; Binding
// and Bypass are for loops of package compat and for services that ask.
// Layers change neither the messages nor the options that they are
// given.
//
// Layers fail closed: what is recorded wins over what the messages say,
// and each request is answered once. Package compat has the same layers
// as the .NET library has them, holes included.
package layer
