package policytest

import "github.com/assent-dev/assent/resolve"

func toolCall(alias string) resolve.Call {
	return resolve.Call{Kind: resolve.Tool, Tool: alias}
}

func serverCall(server, tool string) resolve.Call {
	return resolve.Call{Kind: resolve.MCPTool, Server: server, Tool: tool}
}

func skillCall(agent, skill string) resolve.Call {
	return resolve.Call{Kind: resolve.Skill, Agent: agent, Skill: skill}
}

func delegation(agent string, remote resolve.Remote) resolve.Call {
	return resolve.Call{Kind: resolve.Delegation, Agent: agent, Remote: remote}
}
