package agent

func newLoop(model ChatClient, cfg LoopConfig) ChatClient { return newBoundLoop(model, cfg) }
